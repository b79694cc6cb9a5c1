"""Files of ours that are SQLite databases: shared by threads and processes, and told from other programs'."""

from __future__ import annotations

import os
import sqlite3
import stat
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

_LONGEST = 100_000_000  # bytes of a value or row; SQLite would take a thousand million into memory
_REMEMBERED = 1_000
_QUOTED = 200  # characters of a message of SQLite
# The states of files whose rows were checked.
_CHECKED: set[tuple[object, ...]] = set()
_BESIDE = ("-wal", "-shm", "-journal")  # what SQLite keeps beside a file, and opens


class Format(NamedTuple):
    """What a kind of file is.

    Attributes:
        noun: What it is called in messages, such as "vector cache".
        application: Its application id, so that no other program's database is taken for it.
        version: Its version.
        schema: The statements that make its tables, with semicolons between them.
        error: What is raised where it cannot be used.
        advice: What to do about a damaged one.
        fault_of: Says what is wrong with the rows of a file, None if nothing is; asked before anything reads them.
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
    """A connection to the file for one thread at a time, and its errors in our words.

    Readers never wait for a writer, and a writer that is killed leaves nothing half-done (write-ahead log).

    Args:
        path: The file; it is made when it is first written to.
        kind: What it is.
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
        """Whether there is a file, as far as can be seen."""
        return _mode(str(self.path)) is not None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection to read from.

        Raises:
            OpragError: The file is damaged, is another one, or cannot be read; in the class of its kind.
        """
        with self._lock, self._opened("read") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection in a transaction: all that is written is there afterwards, or nothing of it.

        Raises:
            OpragError: The file is damaged, is another one, or cannot be written; in the class of its kind.
        """
        with self._lock, self._opened("write") as connection, _transaction(connection):
            yield connection

    def close(self) -> None:
        """End the connection; the next use opens another one."""
        with self._lock:
            self._end()

    def erase(self) -> None:
        """Remove what was deleted from the disk: SQLite leaves it in free pages and in the log.

        Raises:
            OpragError: The file cannot be written, or another process is reading it all the time.
        """
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
        """The error to raise for a file whose content is not what it should be."""
        noun = self.kind.noun
        return self.kind.error(
            f"the {noun} {self.path} is no {noun}, or is damaged ({_short(reason)}); {self.kind.advice}", self.path
        )

    @contextmanager
    def _opened(self, purpose: str) -> Iterator[sqlite3.Connection]:
        try:
            # Neither behind a fork nor over a file that was deleted is a connection good for anything.
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
            # The file may be deleted now, and made anew.
            self._end()
            reason = "it has text that is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
            raise self.damaged(reason) from error

    def _end(self) -> None:
        # That of a parent process is not for a fork to close.
        if self._connection is not None and self._belongs_to[:1] == (os.getpid(),):
            self._connection.close()
        self._connection = None

    def _place(self) -> tuple[int, ...]:
        """What tells this file and this process from others; nothing where there is no file."""
        try:
            about = self.path.stat()
        except OSError:
            return ()
        return os.getpid(), about.st_dev, about.st_ino

    def _connect(self, purpose: str) -> sqlite3.Connection:
        # SQLite would wait for the other end of a pipe.
        for path in (f"{self.path}{end}" for end in ("", *_BESIDE)):
            if (mode := _mode(path)) is not None and not stat.S_ISREG(mode):
                it = "it" if path == str(self.path) else path
                reason = "is a folder" if stat.S_ISDIR(mode) else "is not a regular file"
                raise self.kind.error(f"cannot {purpose} the {self.kind.noun} {self.path}: {it} {reason}", self.path)
        try:
            return self._connected(str(self.path), uri=False)
        except sqlite3.OperationalError:
            if purpose != "read":
                raise
            # A file that comes with an image or lies on a medium that cannot be written.
            return self._connected(f"{self.path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)

    def _connected(self, target: str, *, uri: bool) -> sqlite3.Connection:
        # Transactions are begun and ended here, not by the sqlite3 module.
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
        """Check whose file it is; make the tables in a new one."""
        kind = self.kind
        if not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            connection.execute("PRAGMA journal_mode = WAL")
            with _transaction(connection):
                # Another process may have been faster.
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
            raise kind.error(f"{self.path} is no {kind.noun}, but another SQLite database", self.path)
        if version != kind.version:
            raise kind.error(
                f"the {kind.noun} {self.path} has format {version}, this version of oprag reads format {kind.version}",
                self.path,
            )
        # A view or a trigger in place of our tables could compute for ever, or change what is written.
        made = _made(kind.schema)
        found = _definitions(connection, {name for _, name, *_ in made})
        if found != made:
            own = [f"; drop the index {describe(name)}" for what, name, *_ in found - made if what == "index"]
            raise self.damaged(f"its tables are not those that oprag makes{''.join(own[:1])}")
        self._check_rows(connection)

    def _check_rows(self, connection: sqlite3.Connection) -> None:
        """Refuse rows that nobody can read; once, not at each opening of the file."""
        state = self._state()
        if state in _CHECKED:
            return
        if fault := self.kind.fault_of(connection):
            raise self.damaged(fault)
        if len(_CHECKED) >= _REMEMBERED:
            _CHECKED.clear()
        _CHECKED.add(state)

    def _state(self) -> tuple[object, ...]:
        """What changes with each write to the file."""
        found: list[object] = [self.kind.application]
        for path in (self.path, self.path.with_name(f"{self.path.name}-wal")):
            with suppress(OSError):
                # An empty log comes and goes with each connection.
                if (about := path.stat()).st_size:
                    found += [about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns]
        return tuple(found)


def _short(reason: object) -> str:
    """What SQLite says, which may quote the whole definition of a damaged table."""
    return " ".join(str(reason).split())[:_QUOTED]


def _mode(path: str) -> int | None:
    """What kind of file there is; None where there is none, or nobody may look."""
    try:
        return Path(path).stat().st_mode
    except (OSError, ValueError):
        return None


@cache
def _made(schema: str) -> set[tuple[Any, ...]]:
    """The definitions of everything in a file that was made by this schema."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema)
        return _definitions(connection, {name for (name,) in connection.execute("SELECT name FROM sqlite_master")})


def _definitions(connection: sqlite3.Connection, names: Iterable[str]) -> set[tuple[Any, ...]]:
    """The definitions of tables and views with these names, and of everything that belongs to them."""
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
    # At the end of the process a thread may be writing still, such as one that waited for a model: closed under it,
    # SQLite would crash, while a process that ends with an open connection leaves nothing half-done.
    if process == os.getpid() and lock.try_enter():
        connection.close()
        lock.__exit__(None, None, None)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        # On a full disk it is this that fails, and the next transaction must be able to begin.
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
