"""Where things stand in the kernel's memory: header words, fields of its records, codes of operators and contexts."""

from __future__ import annotations

NONE = -1
FOREVER = (1 << 62) - 1
"""A time that never comes; small enough that sums with durations do not overflow."""

USED, CAPACITY = 1, 2
"""A growable array has three header words: address, used, capacity."""

ITEMS, POOL, PARTS, OUT, FOUND, PICKED, SPANS, ASKED, ACTIVE = range(0, 27, 3)
GROWABLE = (ITEMS, POOL, PARTS, OUT, FOUND, PICKED, SPANS, ASKED, ACTIVE)
"""ITEMS: what waits in lists. POOL, PARTS: composite occurrences and their rows. OUT: the epoch's occurrences, node by
node. FOUND: (node, occurrence) that leave the kernel. PICKED: initiators that an occurrence met. SPANS: ends of the
windows of P* detections. ASKED: rows a mask is asked of. ACTIVE: nodes to visit in the epoch, ascending."""

(
    FREE_ITEM,
    ROW_TIME,
    ROW_ID,
    ROW_EVENT,
    EVENT_RANK,
    NODES,
    OPERANDS,
    PARENTS,
    CONJUNCTS,
    BUFFERS,
    GROW,
    INTEGERS,
    FLOATS,
    NULLS,
    STRIDE,
    LISTS,
    SLOTS,
    DUE,
    KEYS,
    TIMERS,
    TIMERS_COUNT,
    TEMPORAL,
    TEMPORAL_COUNT,
    TEMPORAL_NEXT,
    LAST_TICK,
    TOUCHED,
    HEADER_WORDS,
) = range(27, 27 + 27)

BUCKET_BITS = 12
"""The partitions of a bucket have numbers that differ in these low bits only."""

ITEM_WORDS = 4
ITEM_NEXT, ITEM_OCCURRENCE, ITEM_START, ITEM_END = range(ITEM_WORDS)

POOL_WORDS = 5
POOL_START, POOL_END, POOL_FIRST, POOL_COUNT, POOL_MARK = range(POOL_WORDS)
"""MARK: the number of the tick (P), or where its SPANS begin (P*)."""

FOUND_WORDS = 2

NODE_WORDS = 17
(
    OPERATOR,
    CONTEXT,
    POINT,
    WITHIN,
    DURATION,
    COUNT,
    SLOT,
    RECORDED,
    FIRST_OPERAND,
    OPERAND_COUNT,
    FIRST_PARENT,
    PARENT_COUNT,
    FIRST_CONJUNCT,
    CONJUNCT_COUNT,
    DISTINCT,
    DIRECT,
    PLAIN,
) = range(NODE_WORDS)
"""DISTINCT: no two occurrences of an epoch have the same constituents. DIRECT, of a leaf: nobody listens to it, and its
parents have no parents. PLAIN: a `;` of two leaves without conjuncts."""

CONJUNCT_WORDS = 4
CONJUNCT_KIND, CONJUNCT_OPERAND, CONJUNCT_FUNCTION, CONJUNCT_FRAME = range(CONJUNCT_WORDS)
"""FUNCTION, FRAME: addresses of the compiled conjunct and of what it is asked with."""

OPERATORS = (
    "leaf",
    "temporal",
    "relay",
    "pattern",
    "or",
    "and",
    ";",
    "not",
    "A",
    "A*",
    "P",
    "P*",
    "+",
    "absent",
    "times",
)
LEAF, TEMPORAL_LEAF, RELAY, PATTERN, OR, AND, SEQUENCE, NOT, A, A_STAR, P, P_STAR, PLUS, ABSENT, TIMES = range(15)
INPUTS = (LEAF, TEMPORAL_LEAF, RELAY, PATTERN)
TIMED = (P, PLUS, ABSENT)

CONTEXTS = ("unrestricted", "recent", "chronicle", "continuous", "cumulative")
UNRESTRICTED, RECENT, CHRONICLE, CONTINUOUS, CUMULATIVE = range(5)

SLOTS_OF = {AND: 2, A_STAR: 2, SEQUENCE: 1, NOT: 1, A: 1, P: 1, P_STAR: 1, PLUS: 1, ABSENT: 1, TIMES: 1}
"""Lists a node keeps per partition: `and` one per side, `A*` its windows and the middle events they may record."""
