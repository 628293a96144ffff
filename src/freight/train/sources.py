"""Where a corpus comes from: files, folders, archives, standard input; and what is a text there."""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import IO, Any

from freight.data.lines import decoded, lines
from freight.errors import InvalidInput
from freight.train.java import method_names

STDIN = "-"


@dataclass(frozen=True)
class Take:
    """What is a text: a line, a file or a name; how it becomes words, and in which files it is."""

    texts: Callable[[Iterable[str]], Iterable[str]]
    lang: str = "en"
    glob: str = "*"


@dataclass(frozen=True)
class Source:
    """A file to read, under the name that the user gave it."""

    name: str
    path: Path
    members: str | None = None  # which files of an archive
    spool: IO[bytes] | None = field(default=None, repr=False)

    @property
    def sha256(self) -> str:
        """Of the file as it lies on the disk."""
        with self.path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def documents(self, encoding: str) -> Iterator[Iterable[str]]:
        """The lines of the file, or of each file of an archive."""
        if self.members is None:
            yield lines(self.path, encoding, self.name)
            return
        try:
            with zipfile.ZipFile(self.path) as archive:
                for name in sorted(archive.namelist()):
                    if fnmatch(PurePosixPath(name).name, self.members) and name[-1] != "/":
                        with archive.open(name) as stream:
                            yield decoded(stream, encoding, f"{self.name}/{name}")
        except zipfile.BadZipFile as error:
            raise InvalidInput(f"{self.name} is not a whole zip file ({error})") from None


def find_sources(paths: Sequence[str], glob: str) -> list[Source]:
    """The files that are meant: themselves, those in a folder or in an archive by `glob`."""
    if list(paths).count(STDIN) > 1:
        raise InvalidInput("standard input can be read once; give - once only")
    found = []
    for name in paths:
        path = Path(name).expanduser()
        if name == STDIN:
            found.append(_spooled())
        elif path.is_dir():
            inside = sorted(one for one in path.rglob(glob) if one.is_file())
            if not inside:
                raise InvalidInput(f"the folder {name} holds no file {glob}; say --glob '*.txt'")
            found += [Source(one.as_posix(), one) for one in inside]
        elif not path.is_file():
            raise InvalidInput(f"there is no file or folder {name}")
        else:
            found.append(Source(name, path, glob if path.suffix == ".zip" else None))
    return found


def _spooled() -> Source:
    """Standard input, in a file that vanishes with what is returned."""
    spool: Any = tempfile.NamedTemporaryFile()  # noqa: SIM115
    shutil.copyfileobj(sys.stdin.buffer, spool)
    spool.flush()
    return Source("standard input", Path(spool.name), spool=spool)


def _lines(document: Iterable[str]) -> Iterable[str]:
    return document


def _whole(document: Iterable[str]) -> Iterable[str]:
    return ["".join(document)]


def _java_names(document: Iterable[str]) -> Iterable[str]:
    return method_names("".join(document))


TAKES = {
    "lines": Take(_lines),
    "files": Take(_whole),
    "java-names": Take(_java_names, "code", "*.java"),
    "java-files": Take(_whole, "code", "*.java"),
}
