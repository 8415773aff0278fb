"""Shards: really as many partitions as asked for, and one shard for equal keys."""

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from estream.stream.shard import shards_of, spark_keys


@pytest.mark.parametrize("count", [1, 2, 3, 8, 40])
def test_every_shard_has_a_partition_of_spark_to_itself(spark: SparkSession, count: int) -> None:
    keys = spark.createDataFrame([(key,) for key in spark_keys(count)], "key int")
    partitions = [row[0] for row in keys.select(F.expr(f"pmod(hash(key), {count})")).collect()]
    assert partitions == list(range(count))


def test_equal_keys_are_on_one_shard_whatever_batch_they_come_in() -> None:
    rows = pa.table({"card": [7, 8, 7, None, 9], "place": ["here", "there", "here", "here", None]})
    whole = shards_of(rows, ["card", "place"], 16).tolist()
    alone = [shards_of(rows.slice(place, 1), ["card", "place"], 16)[0] for place in range(rows.num_rows)]
    assert whole == alone
    assert whole[0] == whole[2]


def test_many_keys_are_spread_evenly() -> None:
    rows = pa.table({"card": range(10_000)})
    shards = shards_of(rows, ["card"], 8).tolist()
    assert all(1_000 < shards.count(shard) < 1_500 for shard in range(8))
