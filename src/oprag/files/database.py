"""oprag's SQLite databases: shared by threads and processes, and checked before use, because files are untrusted."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from oprag.errors import OpragError
from oprag.files.fork_safe import ForkSafeLock
from oprag.masking import describe

__all__ = ["Database", "Format"]

_MAX_BYTES = 16_000_000  # of a value or row; SQLite's own limit is 1,000,000,000
_MAX_QUOTED = 200  # characters of a message of SQLite
_COMPANIONS = ("-wal", "-shm", "-journal")  # suffixes of files that SQLite makes next to a database, and opens


class Format(NamedTuple):
    """A kind of database.

    Attributes:
        noun: Its name in messages, such as "vector cache".
        application: Its SQLite application id, which distinguishes it from databases of other programs.
        version: Its format version.
        schema: The SQL statements that create its tables, separated by semicolons.
        error: The class of its errors.
        advice: What to do about a corrupt file, for messages.
        checked: Whether to check the pages, types, constraints and foreign keys of a file when it is opened.
        patience: Seconds to wait for another process that writes.
    """

    noun: str
    application: int
    version: int
    schema: str
    error: type[OpragError]
    advice: str
    checked: bool = False
    patience: float = 60.0


class Database:
    """A connection to a database file for one thread at a time; raises the errors of its format.

    Uses a write-ahead log: readers never wait for a writer, and a killed writer leaves no partial changes.

    Args:
        path: The file; created at first use.
        kind: Its format.
    """

    def __init__(self, path: str | os.PathLike[str], kind: Format) -> None:
        self.path = Path(path)
        self.kind = kind
        if "\0" in str(path):
            raise kind.error(f"the name of a {kind.noun} cannot contain a null character: {describe(path)}", path)
        self._lock = ForkSafeLock()
        self._connection: sqlite3.Connection | None = None
        # The process and the file on the disk that the connection belongs to.
        self._belongs_to: tuple[int, ...] = ()

    def __getstate__(self) -> tuple[Path, Format]:
        return self.path, self.kind

    def __setstate__(self, state: tuple[Path, Format]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def exists(self) -> bool:
        """Return whether the file exists; False if its folder is not readable."""
        return _mode(str(self.path)) is not None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection for reading, which sees one state of the file."""
        with self._lock, self._opened("read") as connection, _transaction(connection, "DEFERRED"):
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection in a transaction, which is rolled back if the block raises."""
        with self._lock, self._opened("write") as connection, _transaction(connection, "IMMEDIATE"):
            yield connection

    def close(self) -> None:
        """Close the connection; the next use opens a new one."""
        with self._lock:
            self._end()

    def erase(self) -> None:
        """Erase deleted rows from the disk: SQLite leaves them in free pages and in the log."""
        with self._lock, self._opened("write") as connection:
            connection.execute("VACUUM")
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise self.kind.error(
                f"rows deleted from the {self.kind.noun} {self.path} are still on disk, because another process is "
                "reading the file; delete them again later",
                self.path,
            )

    def damaged(self, reason: str) -> OpragError:
        """Return the error for a file with invalid contents."""
        noun = self.kind.noun
        return self.kind.error(
            f"{self.path} is not a {noun}, or is corrupt ({_short(reason)}); {self.kind.advice}", self.path
        )

    @contextmanager
    def _opened(self, purpose: str) -> Iterator[sqlite3.Connection]:
        try:
            # After a fork, or if the file was deleted, the connection is no longer usable.
            if self._connection is None or self._belongs_to != self._place():
                self._end()
                self._connection = self._connect(purpose)
                self._belongs_to = self._place()
            yield self._connection
        except (sqlite3.OperationalError, sqlite3.DataError) as error:
            missing = "; its folder does not exist" if _mode(str(self.path.parent)) is None else ""
            raise self.kind.error(
                f"cannot {purpose} the {self.kind.noun} {self.path}: {_short(error)}{missing}", self.path
            ) from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            # Close it, so that the caller can delete the file and create a new one.
            self._end()
            reason = "it contains text that is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
            raise self.damaged(reason) from error

    def _end(self) -> None:
        # A forked process must not close the connection of its parent.
        if self._connection is not None and self._belongs_to[:1] == (os.getpid(),):
            self._connection.close()
        self._connection = None

    def _place(self) -> tuple[int, ...]:
        """Return the ids of the process and of the file on disk; empty if the file is missing."""
        try:
            about = self.path.stat()
        except OSError:
            return ()
        return os.getpid(), about.st_dev, about.st_ino

    def _connect(self, purpose: str) -> sqlite3.Connection:
        # SQLite would block on a pipe.
        for path in (f"{self.path}{end}" for end in ("", *_COMPANIONS)):
            if (mode := _mode(path)) is not None and not stat.S_ISREG(mode):
                it = "it" if path == str(self.path) else path
                reason = "is a folder" if stat.S_ISDIR(mode) else "is not a regular file"
                raise self.kind.error(f"cannot {purpose} the {self.kind.noun} {self.path}: {it} {reason}", self.path)
        try:
            return self._connected(str(self.path), uri=False)
        except sqlite3.OperationalError:
            if purpose != "read":
                raise
            # The file may be on a read-only medium, such as a container image.
            return self._connected(f"{self.path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)

    def _connected(self, target: str, *, uri: bool) -> sqlite3.Connection:
        # isolation_level=None turns off the implicit transactions of the sqlite3 module.
        connection = sqlite3.connect(
            target, timeout=self.kind.patience, isolation_level=None, check_same_thread=False, uri=uri
        )
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_BYTES)
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute("PRAGMA foreign_keys = ON")
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        weakref.finalize(self, _close, connection, os.getpid(), self._lock)
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Create the tables of a new file; check that an existing file has this format."""
        kind = self.kind
        if not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            self._write_ahead(connection)
            with _transaction(connection, "IMMEDIATE"):
                # Another process may have created them in the meantime.
                if not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                    for statement in filter(str.strip, kind.schema.split(";")):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA application_id = {kind.application}")
                    connection.execute(f"PRAGMA user_version = {kind.version}")
        connection.execute("PRAGMA synchronous = NORMAL")
        ((application,), (version,)) = (
            connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        if application != kind.application:
            raise kind.error(
                f"{self.path} is not a {kind.noun}, but another SQLite database; use a different path", self.path
            )
        if version != kind.version:
            fix = "upgrade oprag: pip install -U oprag" if version > kind.version else kind.advice
            raise kind.error(
                f"the {kind.noun} {self.path} has format {version}, expected {kind.version}; {fix}", self.path
            )
        # A view or a trigger could compute forever, or change what is written.
        made = _made(kind.schema)
        if _definitions(connection, {name for _, name, *_ in made}) != made:
            raise self.damaged("its tables are not those that oprag creates")
        tables = [name for what, name, *_ in made if what == "table"]
        if kind.checked and (fault := _fault_of(connection, tables)):
            raise self.damaged(fault)

    def _write_ahead(self, connection: sqlite3.Connection) -> None:
        """Turn on the write-ahead log; retry, because SQLite does not wait for another process that does the same."""
        until = time.monotonic() + self.kind.patience
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(0.01)
            else:
                return


def _fault_of(connection: sqlite3.Connection, tables: Iterable[str]) -> str | None:
    """Describe a corrupt page, a value of a wrong type, or a reference to a missing row; None if there is none."""
    # Other tables may have constraints that take forever.
    for table in tables:
        (found,) = connection.execute(f"PRAGMA quick_check({table})").fetchone()
        if found != "ok":
            return str(found).splitlines()[-1]
        for _, _, parent, _ in connection.execute(f"PRAGMA foreign_key_check({table})"):
            return f"a row of {table} refers to a missing row of {parent}"
    return None


def _short(reason: object) -> str:
    """Shorten a message of SQLite, which may quote the whole definition of a corrupt table."""
    return " ".join(str(reason).split())[:_MAX_QUOTED]


def _mode(path: str) -> int | None:
    """Return the mode of a file; None if it does not exist or its folder is not readable."""
    try:
        return Path(path).stat().st_mode
    except (OSError, ValueError):
        return None


@cache
def _made(schema: str) -> set[tuple[Any, ...]]:
    """Return the definitions of everything that a schema creates."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema)
        return _definitions(connection, {name for (name,) in connection.execute("SELECT name FROM sqlite_master")})


def _definitions(connection: sqlite3.Connection, names: Iterable[str]) -> set[tuple[Any, ...]]:
    """Return the definitions of tables and views with these names, and of their indexes and triggers."""
    ours = [name.lower() for name in names]
    marks = ", ".join("?" * len(ours))
    query = (
        "SELECT type, name, tbl_name, sql FROM sqlite_master "  # noqa: S608
        f"WHERE lower(name) IN ({marks}) OR lower(tbl_name) IN ({marks})"
    )
    return {
        (*about, " ".join(sql.split()) if isinstance(sql, str) else sql)
        for *about, sql in connection.execute(query, [*ours, *ours])
    }


def _close(connection: sqlite3.Connection, process: int, lock: ForkSafeLock) -> None:
    # When the process ends, a thread may still be writing, and SQLite would crash if its connection were closed. Ending
    # the process with an open connection is safe.
    if process == os.getpid() and lock.try_enter():
        connection.close()
        lock.__exit__(None, None, None)


@contextmanager
def _transaction(connection: sqlite3.Connection, kind: str) -> Iterator[None]:
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        # If this fails, for example on a full disk, roll back so that the next transaction can begin.
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
