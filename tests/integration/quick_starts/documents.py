"""Real documents of the kinds that people load, made from what is on a machine after the tests were installed."""

from __future__ import annotations

import importlib
import importlib.metadata
import pydoc
import shutil
import textwrap
from html.parser import HTMLParser
from pathlib import Path
from pydoc_data.topics import topics

import matplotlib as mpl
import pypdf

from tests.pdfs import pdf

__all__ = ["TRANSCRIPT", "html_text", "text_of", "write_documents"]

PDFS = {"language": ("compound", "execmodel", "import", "objects"), "data_model": ("types", "specialnames")}
TEXTS = {"strings": ("strings", "formatstrings", "string-methods"), "debugger": ("debugger", "try", "exceptions")}
READMES = ("openai", "pydantic")
MODULES = ("argparse", "logging")

# Who says what in a recorded meeting.
TRANSCRIPT = [
    tuple(line.split(": ", 1))
    for line in """\
Ines: Good morning, everyone. The tide tables are on the wall, and the coffee is the strong one.
Omar: Before we begin, has anybody seen the key of the boat shed? It was on its hook on Friday.
Ines: Ruth took it, because the roofers needed the ladder. It should be back by noon.
Ruth: It is in my coat, sorry. The roofers have finished the north side and will do the rest after the storm.
Ines: Then let us start with the light. Omar, you were up there on Saturday.
Omar: I was. The lamp turns again, but the bearing on the left grinds, and I can hear it from the stairs.
Ruth: Is that the bearing which we changed two winters ago?
Omar: The same one. The salt gets in because the cover has a crack, so a new bearing alone will not help.
Ines: How much is a cover, and who still makes them?
Omar: The foundry in the old town would cast one for about nine hundred, if we bring them the broken one as a pattern.
Lena: The grant for the museum would pay for that. It names the historic lamp and everything that moves it.
Ines: Good. Lena, will you write to the foundation this week?
Lena: I will, but they want three photographs and an estimate on paper, so Omar has to give me both by Wednesday.
Omar: You will have them on Tuesday evening. I only need daylight and a dry camera.
Ruth: Can we talk about visitors? Last Sunday there were sixty people on the stairs at the same time.
Ines: Sixty? The fire officer allows twenty five.
Ruth: I know. I was alone at the door, and a whole coach came in while I sold postcards.
Lena: We could sell tickets for every half hour, as the castle does. Then nobody waits in the rain either.
Omar: Tickets need a till, and the till has been broken since the regatta.
Lena: My nephew repairs tills. He would look at it for a tour of the lamp room.
Ines: That is the cheapest offer that I have heard this year. Tell him yes.
Ruth: And please a second person at the door on Sundays, at least until October.
Ines: I will do the next two Sundays myself. After that we ask the sailing club.
Omar: The sailing club owes us for the moorings anyway. Nobody has paid since the spring.
Ines: That brings us to money. Lena, how bad is it?
Lena: Not bad. The shop made four thousand in August, and the ferry company paid for its poster at last.
Lena: But the insurance goes up by a fifth, since the sea wall has sunk by a hand's breadth near the slipway.
Ruth: I measured that again. It is eleven centimetres now, and the crack behind it is new.
Omar: If the wall goes, the boat shed goes with it. We should move the dinghies before the autumn tides.
Ines: Agreed. How many people do we need for the dinghies?
Omar: Six, and a trailer. The school has one that we may borrow on a Thursday.
Ruth: Thursday week would suit me. The spring tide is on the Saturday after it.
Ines: Then Thursday week, at nine, in boots. Omar asks the school, and Ruth finds three more people.
Lena: What do we tell the harbour office about the wall? It is theirs, after all.
Ines: The truth, with the figures. Ruth, put your measurements on one page, with the dates.
Ruth: I have them since March. One page is enough, and the curve speaks for itself.
Lena: They will say that there is no budget before January.
Ines: Then we ask for sandbags in October and for a wall in January. Nobody has ever refused us sandbags.
Omar: One more thing. The old keeper's log is back from the binder, all four volumes.
Ruth: Wonderful! Can visitors see it, or is it too fragile?
Omar: Under glass, yes. The binder says no sunlight, and one turned page a month.
Lena: We could show the page of the great storm first. Everybody asks about the night when the ferry ran aground.
Ines: A good idea. The case from the shell collection is empty, and it has a lock.
Ruth: Its lock has no key either. We are a museum of missing keys.
Ines: Then the locksmith comes as well. Who keeps the list of what we have decided?
Lena: I do. The letter, tickets, the till, two Sundays, dinghies on Thursday week, one page about the wall, the log.
Omar: And the bearing. Do not forget the bearing, or the lamp will wake the whole village.
Ines: And the bearing. Thank you all. We meet again in two weeks, after the spring tide, if the wall is still there.
""".splitlines()
]


def write_documents(folder: Path) -> None:
    """Two PDFs, texts, Markdown files and web pages each, a table, and a transcript."""
    for name, parts in PDFS.items():
        (folder / f"{name}.pdf").write_bytes(pdf(*_pages("\n\n".join(topics[part] for part in parts))))
    for name, parts in TEXTS.items():
        (folder / f"{name}.txt").write_text("\n\n".join(topics[part] for part in parts), encoding="utf-8")
    for name in READMES:
        # What a package shows on its page: a readme, here with a changelog, in Markdown.
        description = importlib.metadata.metadata(name).json["description"]
        (folder / f"{name}.md").write_text(str(description), encoding="utf-8")
    for name in MODULES:
        shown = pydoc.HTMLDoc()
        page = shown.page(name, shown.docmodule(importlib.import_module(name)))
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    shutil.copy(Path(mpl.get_data_path(), "sample_data", "msft.csv"), folder)
    (folder / "meeting.srt").write_text(_subtitles(), encoding="utf-8")


def text_of(path: Path) -> str:
    """The text of a document, as its readers see it."""
    if path.suffix == ".pdf":
        return "\n".join(page.extract_text() for page in pypdf.PdfReader(path).pages)
    text = path.read_text(encoding="utf-8")
    return html_text(text) if path.suffix == ".html" else text


def html_text(page: str) -> str:
    """What a web page shows."""
    reader = _Texts()
    reader.feed(page)
    return "".join(reader.texts)


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def _pages(text: str, lines: int = 46) -> list[str]:
    """The pages of a text, in the characters that fonts of PDF files have."""
    printable = text.encode("cp1252", "replace").decode("cp1252")
    wrapped = [line for paragraph in printable.split("\n") for line in textwrap.wrap(paragraph, 88) or [""]]
    return ["\n".join(wrapped[start : start + lines]) for start in range(0, len(wrapped), lines)]


def _subtitles() -> str:
    """The transcript as a file of subtitles."""
    entries: list[str] = []
    second = 0
    for number, (speaker, said) in enumerate(TRANSCRIPT, 1):
        end = second + 2 + len(said) // 15
        entries.append(f"{number}\n{_time(second)} --> {_time(end)}\n{speaker}: {said}\n")
        second = end
    return "\n".join(entries)


def _time(seconds: int) -> str:
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d},000"
