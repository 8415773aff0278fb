"""The data types of columns and expressions, by their Spark SQL names."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

INTEGERS = ("tinyint", "smallint", "int", "bigint")
FRACTIONS = ("float", "double", "decimal")


@dataclass(frozen=True, slots=True)
class DataType:
    """A Spark SQL type: its name, and for nested ones and decimals the written arguments."""

    name: str
    arguments: tuple[str, ...] = ()
    element: DataType | None = None

    def __str__(self) -> str:
        if self.element is not None:
            return f"{self.name}<{self.element}>"
        if not self.arguments:
            return self.name
        opening, closing = ("(", ")") if self.name == "decimal" else ("<", ">")
        return f"{self.name}{opening}{','.join(self.arguments)}{closing}"

    @property
    def is_integer(self) -> bool:
        return self.name in INTEGERS

    @property
    def is_number(self) -> bool:
        return self.name in INTEGERS or self.name in FRACTIONS

    @property
    def is_known(self) -> bool:
        """False where only Spark can tell the type: such a column is not checked."""
        return self.name != "unknown"


BOOLEAN = DataType("boolean")
TINYINT = DataType("tinyint")
SMALLINT = DataType("smallint")
INT = DataType("int")
BIGINT = DataType("bigint")
FLOAT = DataType("float")
DOUBLE = DataType("double")
STRING = DataType("string")
TIMESTAMP = DataType("timestamp")
DATE = DataType("date")
INTERVAL = DataType("interval")
NULL = DataType("void")
UNKNOWN = DataType("unknown")


def array_of(element: DataType) -> DataType:
    """The type of a list of values."""
    return DataType("array", element=element)


def spelling(name: str, declared: Collection[str]) -> str | None:
    """The name as it is declared: Spark does not regard case."""
    if name in declared:
        return str(name)
    lower = name.lower()
    return next((other for other in declared if other.lower() == lower), None)
