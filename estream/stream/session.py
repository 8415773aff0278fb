"""The Spark session that EStream runs in, made from the settings."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from estream.settings import Settings

ROWS_PER_BATCH = 16_384
"""Rows of an Arrow batch: enough to keep the cost of a call to Python out of sight, few enough for long texts."""

BYTES_PER_BATCH = (1 << 31) - 1
"""Spark's word for no limit. With any other it adds up the bytes of all columns again after each row, which takes
longer than all else that it does with the row."""

RUNTIME: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.metricsEnabled": "false",
    # Checkpoints are folders of this machine, whose files Hadoop itself keeps checksums of. What is the default for
    # other file systems starts some 150 processes (`readlink`, `chmod`) in every micro-batch here.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}
"""What every session needs, whatever the settings say: results and checkpoints depend on it."""

_FIXED: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.worker.reuse": "true",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(BYTES_PER_BATCH),
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_PER_BATCH),
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def open_session(
    settings: Settings, name: str, conf: Mapping[str, str] | None = None, log: Path | None = None
) -> SparkSession:
    """A session by the settings; `conf` goes over everything but what EStream itself depends on.

    Spark's own words go to the file `log`, if one is given, else to where this program's go.
    """
    # Workers that keep state must be of the same interpreter, or they find neither EStream nor its libraries.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    local = settings.spark.master.startswith("local")
    options = {
        **({key: value for key, value in _FIXED.items() if local or not key.startswith("spark.driver.")}),
        "spark.driver.memory": str(settings.spark.memory),
        **{str(key): str(value) for key, value in settings.spark.conf.items()},
        **(conf or {}),
    }
    wanted = SparkConf().setMaster(str(settings.spark.master)).setAppName(f"estream {name}").setAll([*options.items()])
    if log is not None and SparkContext._gateway is None:
        _launch(wanted, log)
    session: SparkSession = SparkSession.builder.config(conf=wanted).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    # PySpark and py4j log each error they raise, JVM stack and all; ours are told as problems.
    for logger in ("SQLQueryContextLogger", "py4j", "py4j.clientserver", "py4j.java_gateway"):
        logging.getLogger(logger).disabled = True
    return session


def _launch(conf: SparkConf, log: Path) -> None:
    """Start the JVM with its words in a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as opened:
        # A signal to the group of this program is for us: Spark must live until the last micro-batch is committed. It
        # ends with this program, whatever that dies of.
        apart = {"stdout": opened, "stderr": opened, "start_new_session": True}
        gateway = launch_gateway(conf, apart)  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway)


def for_detection(session: SparkSession, shards: int) -> SparkSession:
    """A session of its own beside the given one, set for detection in so many shards."""
    own = session.newSession()
    for key, value in RUNTIME.items():
        own.conf.set(key, value)
    own.conf.set("spark.sql.shuffle.partitions", str(shards))
    return own
