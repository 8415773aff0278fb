"""Partial matches as named segments of bytes, under a signature that tells what they mean."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from estream.event.columns import Texts
from estream.event.columns_keys import Keys
from estream.event.pattern import Matcher, next_time
from estream.event.pattern_kernel import USED, new_header
from estream.event.pattern_state import Partials, sweep
from estream.event.segment_format import decode_arrays, decode_table, encode_arrays, encode_table


def save_partials(matcher: Matcher, partials: Partials, watermark: int) -> dict[str, bytes]:
    """Partial matches as named segments of bytes."""
    sweep(matcher.layout, partials, next_time(matcher, watermark))
    arrays = {
        "partitions": partials.partitions,
        "records": partials.records[: partials.header[USED]],
        "keys": partials.keys.words(np.arange(partials.keys.count if partials.keys.tables else 0)),
    }
    texts = pa.table({"text": pa.array(partials.texts.values, pa.large_string())})
    return {
        "partials": encode_arrays(arrays, {"signature": matcher.signature}),
        "texts": encode_table(texts, {}),
        "kept": encode_table(partials.kept, {}),
    }


def load_partials(matcher: Matcher, segments: Mapping[str, bytes]) -> Partials | None:
    """The partial matches that segments hold; None if they are those of a pattern that meant something else."""
    arrays, facts = decode_arrays("partials", segments["partials"])
    if facts["signature"] != matcher.signature:
        return None
    header = new_header(matcher.layout.record_size, len(arrays["records"]))
    attributes = len(matcher.pattern.partition)
    keys, words = Keys(attributes, 0), arrays["keys"].reshape(-1, max(attributes, 1))
    keys.numbers([np.ascontiguousarray(words[:, place]) for place in range(attributes)], None, len(words))
    texts = Texts(decode_table("texts", segments["texts"])[0].column("text").to_pylist())
    kept = decode_table("kept", segments["kept"])[0].cast(matcher.kept)
    return Partials(keys, texts, header, arrays["partitions"].copy(), arrays["records"].copy(), kept)
