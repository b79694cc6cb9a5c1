"""SQLite databases of oprag: shared by threads and processes, and not trusted to be what their name says."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from oprag.errors import OpragError
from oprag.files.fork_safe import ForkSafeLock
from oprag.masking import describe

__all__ = ["Database", "Format"]

_LONGEST = 100_000_000  # bytes of a value or row; SQLite's own limit is a thousand million
_QUOTED = 200  # characters of a message of SQLite
_COMPANIONS = ("-wal", "-shm", "-journal")  # files that SQLite makes beside a database, and opens
# The states of files whose rows were checked.
_CHECKED: set[tuple[object, ...]] = set()
_REMEMBERED = 1_000


class Format(NamedTuple):
    """A kind of database.

    Attributes:
        noun: Its name in messages, such as "vector cache".
        application: Its application id, which tells it from the databases of other programs.
        version: Its version.
        schema: The statements that make its tables, with semicolons between them.
        error: The class of its errors.
        advice: What to do about a damaged one.
        fault_of: Tells what is wrong with the rows of a file, None if nothing is; called before anything reads them.
        patience: Seconds to wait for another process that writes.
    """

    noun: str
    application: int
    version: int
    schema: str
    error: type[OpragError]
    advice: str
    fault_of: Callable[[sqlite3.Connection], str | None] = lambda _: None
    patience: float = 60.0


class Database:
    """A connection to a file for one thread at a time, with the errors of its format.

    Readers never wait for a writer, and a writer that is killed leaves nothing half-done (write-ahead log).

    Args:
        path: The file; made when it is first written to.
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
        """Whether the file exists, as far as can be seen."""
        return _mode(str(self.path)) is not None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection to read from."""
        with self._lock, self._opened("read") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection in a transaction: everything is written, or nothing."""
        with self._lock, self._opened("write") as connection, _transaction(connection):
            yield connection

    def close(self) -> None:
        """Close the connection; the next use opens another one."""
        with self._lock:
            self._end()

    def erase(self) -> None:
        """Remove what was deleted from the disk: SQLite leaves it in free pages and in the log."""
        with self._lock, self._opened("write") as connection:
            connection.execute("VACUUM")
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise self.kind.error(
                f"what was deleted from the {self.kind.noun} {self.path} is still on the disk, since another process "
                "is reading the file; delete it again later",
                self.path,
            )

    def damaged(self, reason: str) -> OpragError:
        """The error for a file whose content is not what it should be."""
        noun = self.kind.noun
        return self.kind.error(
            f"the {noun} {self.path} is not a {noun}, or is damaged ({_short(reason)}); {self.kind.advice}", self.path
        )

    @contextmanager
    def _opened(self, purpose: str) -> Iterator[sqlite3.Connection]:
        try:
            # After a fork, or when the file was deleted, a connection cannot be used any more.
            if self._connection is None or self._belongs_to != self._place():
                self._end()
                self._connection = self._connect(purpose)
                self._belongs_to = self._place()
            yield self._connection
        except sqlite3.OperationalError as error:
            missing = "; its folder does not exist" if _mode(str(self.path.parent)) is None else ""
            raise self.kind.error(
                f"cannot {purpose} the {self.kind.noun} {self.path}: {_short(error)}{missing}", self.path
            ) from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            # The file may be deleted and made anew now.
            self._end()
            reason = "it has text that is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
            raise self.damaged(reason) from error

    def _end(self) -> None:
        # A fork must not close the connection of its parent.
        if self._connection is not None and self._belongs_to[:1] == (os.getpid(),):
            self._connection.close()
        self._connection = None

    def _place(self) -> tuple[int, ...]:
        """The process and the file on the disk; empty if the file is missing."""
        try:
            about = self.path.stat()
        except OSError:
            return ()
        return os.getpid(), about.st_dev, about.st_ino

    def _connect(self, purpose: str) -> sqlite3.Connection:
        # SQLite would wait for the other end of a pipe.
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
            # A file of a container image, or on a read-only medium.
            return self._connected(f"{self.path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)

    def _connected(self, target: str, *, uri: bool) -> sqlite3.Connection:
        # Without transactions that the sqlite3 module begins by itself.
        connection = sqlite3.connect(
            target, timeout=self.kind.patience, isolation_level=None, check_same_thread=False, uri=uri
        )
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        weakref.finalize(self, _close, connection, os.getpid(), self._lock)
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make the tables of a new file; check that another one is of this format."""
        kind = self.kind
        if not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            self._write_ahead(connection)
            with _transaction(connection):
                # Another process may have made them meanwhile.
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
            raise kind.error(f"{self.path} is not a {kind.noun}, but another SQLite database", self.path)
        if version != kind.version:
            raise kind.error(
                f"the {kind.noun} {self.path} has format {version}, this version of oprag reads format {kind.version}",
                self.path,
            )
        # A view or a trigger in place of a table could compute endlessly, or change what is written.
        made = _made(kind.schema)
        found = _definitions(connection, {name for _, name, *_ in made})
        if found != made:
            own = [f"; drop the index {describe(name)}" for what, name, *_ in found - made if what == "index"]
            raise self.damaged(f"its tables are not those that oprag makes{''.join(own[:1])}")
        self._check_rows(connection)

    def _write_ahead(self, connection: sqlite3.Connection) -> None:
        """Turn the write-ahead log on; SQLite does not wait by itself where another process does the same."""
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

    def _check_rows(self, connection: sqlite3.Connection) -> None:
        """Refuse invalid rows; once for each state of the file, not at each opening."""
        state = self._state()
        if state in _CHECKED:
            return
        if fault := self.kind.fault_of(connection):
            raise self.damaged(fault)
        if len(_CHECKED) >= _REMEMBERED:
            _CHECKED.clear()
        _CHECKED.add(state)

    def _state(self) -> tuple[object, ...]:
        """A value that changes with each write to the file."""
        found: list[object] = [self.kind.application]
        for path in (self.path, self.path.with_name(f"{self.path.name}-wal")):
            with suppress(OSError):
                # Each connection makes and removes an empty log.
                if (about := path.stat()).st_size:
                    found += [about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns]
        return tuple(found)


def _short(reason: object) -> str:
    """A message of SQLite, which may quote the whole definition of a damaged table."""
    return " ".join(str(reason).split())[:_QUOTED]


def _mode(path: str) -> int | None:
    """The mode of a file; None where there is none, or its folder may not be read."""
    try:
        return Path(path).stat().st_mode
    except (OSError, ValueError):
        return None


@cache
def _made(schema: str) -> set[tuple[Any, ...]]:
    """The definitions of everything that a schema makes."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema)
        return _definitions(connection, {name for (name,) in connection.execute("SELECT name FROM sqlite_master")})


def _definitions(connection: sqlite3.Connection, names: Iterable[str]) -> set[tuple[Any, ...]]:
    """The definitions of tables and views with these names, of their indexes and their triggers."""
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
    # At the end of the process a thread may still be writing: SQLite would crash if its connection were closed, while a
    # process that ends with an open connection leaves nothing half-done.
    if process == os.getpid() and lock.try_enter():
        connection.close()
        lock.__exit__(None, None, None)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        # On a full disk this fails, and the next transaction must be able to begin.
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
