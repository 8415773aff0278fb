"""What tests of streams may ask for besides."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from estream.stream.source_formats import register


@pytest.fixture
def sourced(spark: SparkSession) -> SparkSession:
    """A session that knows EStream's sources.

    It is one of its own: Spark looks for a name in the first session too, and would refuse it to those of live runs.
    """
    session = spark.newSession()
    register(session)
    return session
