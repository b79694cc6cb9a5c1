"""oprag's SQLite databases: shared by threads and processes, and checked before use, because files are untrusted."""

from __future__ import annotations

import os
import sqlite3
import stat
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from oprag._internal.files.fork_safe import ForkSafeLock
from oprag._internal.masking import describe
from oprag.errors import OpragError

__all__ = ["Database", "Format"]

_MAX_BYTES = 16_000_000  # of a value or row; SQLite's own limit is 1,000,000,000
_MAX_QUOTED = 200  # characters of a message of SQLite, which may quote the whole definition of a corrupt table


class Format(NamedTuple):
    """A kind of database."""

    noun: str  # its name in messages, such as "vector cache"
    application: int  # its SQLite application id, which distinguishes it from databases of other programs
    version: int
    schema: str  # the statements that create its tables, separated by semicolons
    error: type[OpragError]
    advice: str  # what to do about a corrupt file, for messages
    checked: bool = False  # whether to check the pages, types and constraints of a file when it is opened
    patience: float = 60.0  # seconds to wait for another process that writes


class Database:
    """A connection to a database file for one thread at a time; raises the errors of its format.

    Uses a write-ahead log: readers never wait for a writer, and a killed writer leaves no partial changes. The file is
    created at first use.
    """

    def __init__(self, path: str | os.PathLike[str], kind: Format) -> None:
        self.path = Path(path)
        self.kind = kind
        if "\0" in str(path):
            raise kind.error(f"the name of a {kind.noun} cannot contain a null character: {describe(path)}", path)
        self._lock = ForkSafeLock()
        self._connection: sqlite3.Connection | None = None
        self._belongs_to: tuple[int, ...] = ()  # the ids of its process and of its file on disk

    def exists(self) -> bool:
        """Return whether the file exists; False if its folder is not readable."""
        return _mode(self.path) is not None

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
            rows = f"rows deleted from the {self.kind.noun} {self.path} are still on disk"
            problem = f"{rows}, because another process is reading the file; delete them again later"
            raise self.kind.error(problem, self.path)

    def damaged(self, reason: object) -> OpragError:
        """Return the error for a file with invalid contents."""
        noun, advice = self.kind.noun, self.kind.advice
        return self.kind.error(f"{self.path} is not a {noun}, or is corrupt ({_short(reason)}); {advice}", self.path)

    @contextmanager
    def _opened(self, purpose: str) -> Iterator[sqlite3.Connection]:
        try:
            # After a fork, or if the file was deleted, the connection is no longer usable.
            if self._connection is None or self._belongs_to != _place(self.path):
                self._end()
                self._connection = self._connect(purpose)
                self._belongs_to = _place(self.path)
            yield self._connection
        except (sqlite3.OperationalError, sqlite3.DataError) as error:
            missing = "; its folder does not exist" if _mode(self.path.parent) is None else ""
            problem = f"cannot {purpose} the {self.kind.noun} {self.path}: {_short(error)}{missing}"
            raise self.kind.error(problem, self.path) from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            # Close it, so that the caller can delete the file and create a new one.
            self._end()
            raise self.damaged("text is not UTF-8" if isinstance(error, UnicodeDecodeError) else error) from error

    def _end(self) -> None:
        if self._connection is not None:
            _close(self._connection, self._belongs_to[0])
        self._connection = None

    def _connect(self, purpose: str) -> sqlite3.Connection:
        # SQLite would block on a pipe, also in place of its log.
        for path in (f"{self.path}{end}" for end in ("", "-wal", "-shm", "-journal")):
            if (mode := _mode(path)) is not None and not stat.S_ISREG(mode):
                reason = "is a folder" if stat.S_ISDIR(mode) else "is not a regular file"
                raise self.kind.error(f"cannot {purpose} the {self.kind.noun} {self.path}: {path} {reason}", self.path)
        try:
            return self._connected(str(self.path))
        except sqlite3.OperationalError:
            if purpose != "read":
                raise
            # The file may be on a read-only medium, such as a container image.
            return self._connected(f"{self.path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)

    def _connected(self, target: str, *, uri: bool = False) -> sqlite3.Connection:
        connection = sqlite3.connect(
            target,
            timeout=self.kind.patience,
            isolation_level=None,  # no implicit transactions
            check_same_thread=False,
            uri=uri,
        )
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_BYTES)
        try:
            for setting in ("trusted_schema = OFF", "cell_size_check = ON", "foreign_keys = ON"):
                connection.execute(f"PRAGMA {setting}")
            if _is_empty(connection):
                self._create(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        # Not at exit: a thread may still be writing then, and SQLite would crash if its connection were closed.
        weakref.finalize(self, _close, connection, os.getpid()).atexit = False
        return connection

    def _create(self, connection: sqlite3.Connection) -> None:
        """Create the tables; another process may do the same."""
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")
        with _transaction(connection, "IMMEDIATE"):
            if _is_empty(connection):
                for statement in filter(str.strip, self.kind.schema.split(";")):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {self.kind.application}")
                connection.execute(f"PRAGMA user_version = {self.kind.version}")

    def _check(self, connection: sqlite3.Connection) -> None:
        """Raise if the file is of another format, or if its tables were changed."""
        kind = self.kind
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != kind.application:
            problem = f"{self.path} is not a {kind.noun}, but another SQLite database; use a different path"
            raise kind.error(problem, self.path)
        if version != kind.version:
            fix = "upgrade oprag: pip install -U oprag" if version > kind.version else kind.advice
            problem = f"the {kind.noun} {self.path} has format {version}, expected {kind.version}; {fix}"
            raise kind.error(problem, self.path)
        # A trigger or an index of others could compute forever, or change what is written.
        made = {statement.strip() for statement in kind.schema.split(";")} - {""}
        found = connection.execute("SELECT sql, type, name FROM sqlite_master WHERE sql NOT NULL").fetchall()
        others = {what for sql, what, _ in found if sql not in made}
        if not made <= {sql for sql, *_ in found} or others & {"index", "trigger"}:
            raise self.damaged("its tables are not those that oprag creates")
        # Tables of others are not checked: their constraints could take forever.
        for table in [name for sql, what, name in found if what == "table" and sql in made and kind.checked]:
            if (fault := connection.execute(f"PRAGMA quick_check({table})").fetchone()[0]) != "ok":
                raise self.damaged(fault)


def _is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None


def _short(reason: object) -> str:
    return " ".join(str(reason).split())[:_MAX_QUOTED]


def _mode(path: str | Path) -> int | None:
    """Return the mode of a file; None if it does not exist or its folder is not readable."""
    with suppress(OSError, ValueError):
        return Path(path).stat().st_mode
    return None


def _place(path: Path) -> tuple[int, ...]:
    """Return the ids of the process and of the file on disk."""
    with suppress(OSError):
        about = path.stat()
        return os.getpid(), about.st_dev, about.st_ino
    return (os.getpid(),)


def _close(connection: sqlite3.Connection, process: int) -> None:
    # A forked process must not close the connection of its parent.
    if process == os.getpid():
        connection.close()


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
