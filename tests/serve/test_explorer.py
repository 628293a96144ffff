"""The explorer in a real browser: type, slide, compare, upload; light, dark, and on a phone."""

import csv
import gzip
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

import freight
import freight.serve.models as models_module
from freight.serve.access import Access
from freight.serve.app import create_app
from freight.serve.models import ServedModels, load_encoders
from freight.serve.refusals import Limits
from made_adapters import made_adapter
from pages import some_ways
from serve.conftest import SECRET, Gate, open_server, serve_app

HYP, REF = "the young boy wore a coat", "an old man wore a slicker"
GERMAN = "Der alte Mann ging mit seinem Hund durch den Regen nach Hause."
PAUSE = 250
"""Milliseconds without a key after which the explorer asks."""
OpenPage = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any) -> Iterator[OpenPage]:
    """Opens the page; at the end nothing may be on the console or requested from elsewhere."""
    messages: list[str] = []
    requested: list[str] = []
    contexts = []

    def open_in_context(
        address: str, width: int = 1280, scheme: str = "light", path: str = "/"
    ) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 844}, color_scheme=scheme, accept_downloads=True
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(600_000)
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: requested.append(request.url))
        page.goto(address + path)
        if path.partition("#")[0] == "/":
            page.wait_for_selector("#metric-name", state="attached")
        return page

    yield open_in_context
    for context in contexts:
        context.close()
    assert [line for line in messages if "status of 4" not in line] == []
    assert requested
    outside = [url for url in requested if not re.match(r"http://127\.0\.0\.1:\d+/|blob:", url)]
    assert outside == []


def enter(page: Any, hyp: str = HYP, ref: str = REF) -> None:
    page.fill("#hyp", hyp)
    page.fill("#refs textarea", ref)
    wait_for_result(page)


def wait_for_result(page: Any) -> None:
    """Wait until the result belongs to what is in the form."""
    page.wait_for_selector("#result:not([aria-busy=true])")


def score(page: Any) -> str:
    text: str = page.inner_text("#result .fx-score b >> nth=0")
    return text


def test_an_example_is_explained_at_once(service: str, open_page: OpenPage) -> None:
    page = open_page(service)
    wait_for_result(page)
    assert "try an example" in page.inner_text("#result")
    page.click("#example")
    page.wait_for_selector("#result .fx-flows")
    for part in ("Worst words", "Unmatched in the hypothesis", "Heat maps", "Reference", "Cite as"):
        assert part in page.inner_text("#result")
    wait_for_result(page)
    assert re.search(r"freight [\d.]+ score · \d+ ms", page.inner_text("#status"))
    first = page.input_value("#hyp")
    page.click("#example")
    assert page.input_value("#hyp") != first


def test_typing_is_answered_once_it_pauses(service: str, open_page: OpenPage) -> None:
    page = open_page(service, path="/?")
    page.clock.install()
    page.reload()
    page.wait_for_selector("#metric-name", state="attached")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url.rsplit("/", 1)[1]))

    def asked() -> list[str]:  # the browser takes the icon when it likes
        return [name for name in sent if name != "icon.svg"]

    page.fill("#refs textarea", REF)
    page.type("#hyp", HYP)
    page.clock.run_for(PAUSE - 1)
    assert asked() == []
    page.clock.run_for(1)
    wait_for_result(page)
    assert asked() == ["fragment"]
    page.clock.resume()
    assert "young" in page.inner_text("#result")
    before = score(page)
    page.fill("#hyp", REF)
    wait_for_result(page)
    assert score(page) != before
    page.fill("#hyp", "")
    wait_for_result(page)
    assert "try an example" in page.inner_text("#result")


def test_sliders_by_keyboard_change_the_score(service: str, open_page: OpenPage) -> None:
    page = open_page(service)
    page.select_option("#metric-name", "lazy-emd")
    enter(page)
    before = score(page)
    assert page.inner_text("#metric .slider:has(#metric-hyp) output") == "0.23"
    page.focus("#metric-hyp")
    for _ in range(30):
        page.keyboard.press("ArrowRight")
    wait_for_result(page)
    assert score(page) != before
    page.keyboard.press("End")
    wait_for_result(page)
    assert page.inner_text("#metric .slider:has(#metric-hyp) output") == "∞ (hard)"
    assert "∞" in page.get_attribute("#metric-hyp", "aria-valuetext")
    page.click("#metric .reset")
    wait_for_result(page)
    assert score(page) == before


def test_every_control_has_a_label_and_settings_reach_the_signature(
    service: str, open_page: OpenPage
) -> None:
    page = open_page(service)
    for name in ("freight", "std", "bert-score", "bleu", "wmd", "mover-score"):
        page.select_option("#metric-name", name)
        unnamed = page.evaluate(
            """() => [...document.querySelectorAll("select, textarea, input")]
                .filter((one) => !one.labels.length || !one.labels[0].textContent.trim())
                .map((one) => one.id)"""
        )
        assert unnamed == []
    page.select_option("#metric-name", "emd")
    enter(page)
    page.select_option("#metric-layer", "0")
    page.click("#metric details summary")
    page.select_option("#metric-mass", "norm")
    assert page.input_value("#metric-encoder") == ""
    assert "default (hashed)" in page.inner_text("#metric-encoder")
    page.select_option("#metric-encoder", "one-hot")
    wait_for_result(page)
    signature = page.text_content("#result .fx-signature") or ""
    assert "one-hot" in signature
    assert "by=norm" in signature


def test_metrics_without_a_plan_show_their_score(service: str, open_page: OpenPage) -> None:
    page = open_page(service)
    page.select_option("#metric-name", "chrf")
    enter(page)
    assert re.search(r"chrf\s+[\d.]+ score, higher is better", page.inner_text("#result"))
    assert "chrf" in page.inner_text("#status")
    # without --idf a metric that weighs by IDF is offered with uniform masses
    page.select_option("#metric-name", "yisi-1")
    wait_for_result(page)
    assert "yisi-1" in page.inner_text("#status")


def test_a_second_hypothesis_and_a_second_metric(service: str, open_page: OpenPage) -> None:
    page = open_page(service)
    enter(page)
    page.check("[name=compare][value=hyp]")
    page.fill("#other-hyp", "an old man wore a coat")
    page.wait_for_selector("#result .fx-both")
    assert page.locator("#result .fx-one").count() == 2
    page.check("[name=compare][value=metric]")
    assert not page.is_visible("#other-hyp")
    wait_for_result(page)
    names = page.locator("#result .fx-name").all_inner_texts()
    assert names == ["freight", "lazy-emd"]
    page.select_option("#other-metric-name", "bleu")
    wait_for_result(page)
    assert page.locator("#result .plain > div").count() == 2
    page.check("[name=compare][value=none]")
    wait_for_result(page)
    assert page.locator("#result .fx-name").all_inner_texts() == ["freight"]


def test_several_references(service: str, open_page: OpenPage) -> None:
    page = open_page(service)
    enter(page)
    page.click("#add-ref")
    page.keyboard.type(HYP)
    wait_for_result(page)
    assert "2 references" in page.inner_text("#result")
    assert float(score(page)) == pytest.approx(1.0)
    page.click("#refs .ref:nth-child(2) button")
    wait_for_result(page)
    assert page.locator("#refs textarea").count() == 1
    assert float(score(page)) < 1.0


def test_a_file_becomes_a_table_whose_rows_are_explained(
    service: str, open_page: OpenPage, tmp_path: Path
) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(f'hyp,ref\n{HYP},{REF}\n"a cat, asleep",a cat\n"",nothing\n', encoding="utf-8")
    page = open_page(service)
    page.set_input_files("#file", file)
    page.wait_for_selector("#table tbody tr")
    assert page.locator("#table tbody tr").count() == 3
    assert "mine.csv: 3 rows" in page.inner_text("#table h2")
    assert "empty side" in page.inner_text("#table tbody tr:nth-child(3)")
    assert REF in page.inner_text("#table tbody tr:nth-child(1) td.ref")
    page.click("#table tbody tr:nth-child(2) button")
    page.wait_for_selector("#result .fx-flows")
    assert page.input_value("#hyp") == "a cat, asleep"
    assert page.get_attribute("#table tbody tr:nth-child(2)", "aria-current") == "true"
    wait_for_result(page)
    assert page.inner_text("#table tbody tr:nth-child(2) td.number") == score(page)
    page.select_option("#metric-name", "emd")
    page.wait_for_selector("#table th:has-text('emd transport')")
    saved = {}
    for kind in ("CSV", "JSON lines"):
        with page.expect_download() as waiting:
            page.click(f"#table button:has-text('{kind}')")
        saved[kind] = Path(waiting.value.path()).read_text(encoding="utf-8")
    rows = [json.loads(line) for line in saved["JSON lines"].splitlines()]
    assert [row["segment"] for row in rows] == [1, 2, 3]
    assert [row["ref"] for row in rows] == [REF, "a cat", "nothing"]
    read = list(csv.DictReader(saved["CSV"].splitlines()))
    assert list(read[0]) == list(rows[0])
    assert [one["hyp"] for one in read] == [HYP, "a cat, asleep", ""]
    assert read[0]["emd:transport"] == str(rows[0]["emd:transport"])
    page.click("#table .close")
    assert not page.is_visible("#table")


def test_errors_are_shown(service: str, open_page: OpenPage, tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    file.write_text("a,b\n1,2\n", encoding="utf-8")
    page = open_page(service)
    page.set_input_files("#file", file)
    page.wait_for_selector("#status.alarm")
    assert "row 1 of bad.csv has no column 'hyp'" in page.inner_text("#status")
    page.fill("#hyp-column", "a")
    page.fill("#ref-column", "b")
    page.keyboard.press("Tab")
    page.wait_for_selector("#table tbody tr")
    assert "1" in page.inner_text("#table tbody tr td.text")
    enter(page, hyp="x" * 301)
    assert "301 characters" in page.inner_text("#status")
    enter(page)
    assert page.locator("#status.alarm").count() == 0


def fragment_of(page: Any) -> dict[str, list[str]]:
    return parse_qs(page.url.partition("#")[2], keep_blank_values=True)


def test_a_link_reproduces_the_view(service: str, open_page: OpenPage) -> None:
    page = open_page(service)
    assert "#" not in page.url
    enter(page)
    page.select_option("#metric-name", "lazy-emd")
    wait_for_result(page)
    page.select_option("#metric-layer", "1")
    page.focus("#metric-hyp")
    page.keyboard.press("End")
    page.click("#add-ref")
    page.keyboard.type("what & where? 50% #1 + ü")
    page.check("[name=compare][value=metric]")
    page.select_option("#other-metric-name", "emd")
    wait_for_result(page)
    page.wait_for_function("() => location.hash.includes('metric2=emd')")
    fields = fragment_of(page)
    assert fields["hyp"] == [HYP]
    assert fields["ref"] == [REF, "what & where? 50% #1 + ü"]
    chosen = {"name": "lazy-emd", "layer": 1, "settings": {"hyp": "inf"}}
    assert json.loads(fields["metric"][0]) == chosen
    shown = page.inner_text("#result")
    other = open_page(service, path="/#" + page.url.partition("#")[2])
    other.wait_for_selector("#result .fx-both")
    wait_for_result(other)
    assert other.inner_text("#result") == shown
    assert other.inner_text("#metric .slider:has(#metric-hyp) output") == "∞ (hard)"
    assert other.input_value("#other-metric-name") == "emd"
    assert other.url == page.url
    other.reload()
    other.wait_for_selector("#result .fx-both")
    wait_for_result(other)
    assert other.inner_text("#result") == shown


def test_long_texts_fit_into_a_link(service: str, open_page: OpenPage) -> None:
    texts = [" ".join(f"{k} wörds of text {t}" for k in range(14)) for t in range(7)]
    page = open_page(service)
    enter(page, *texts[:2])
    for text in texts[2:]:
        page.click("#add-ref")
        page.fill("#refs .ref:last-child textarea", text)
    wait_for_result(page)
    page.wait_for_function("() => location.hash.startsWith('#z=')")
    assert len(page.url) < 1000
    other = open_page(service, path="/#" + page.url.partition("#")[2])
    other.wait_for_selector("#result .fx-flows")
    assert other.input_value("#hyp") == texts[0]
    assert [area.input_value() for area in other.locator("#refs textarea").all()] == texts[1:]


@pytest.mark.parametrize(
    ("fragment", "message"),
    [
        ("z=broken", "This link is not whole"),
        ("hyp=a&ref=b&metric={", "This link is not whole"),
        ("hyp=a&ref=b&metric=nothing", "the metric nothing, which this service does not have"),
        ("hyp=a&ref=b&metric=bleu", None),
        ("anything", None),
        ("hyp=a", None),
        ("hyp=a&ref=b&metric=%7B%22name%22:%22emd%22,%22settings%22:%7B%22x%22:1%7D%7D", "'x'"),
    ],
)
def test_links_that_are_not_whole(
    service: str, open_page: OpenPage, fragment: str, message: str | None
) -> None:
    page = open_page(service, path=f"/#{fragment}")
    if message is not None:
        page.wait_for_selector("#status.alarm")
        assert message in page.inner_text("#status")
    page.click("#metric .reset")
    enter(page, "a cat", "a dog")
    assert page.locator("#status.alarm").count() == 0


def test_back_returns_to_what_was_looked_at(service: str, open_page: OpenPage) -> None:
    page = open_page(service)
    page.click("#example")
    page.wait_for_selector("#result .fx-flows")
    first, shown = page.input_value("#hyp"), page.inner_text("#result")
    page.fill("#hyp", first + " Indeed.")
    wait_for_result(page)
    page.wait_for_function("() => location.hash.includes('Indeed')")
    page.click("#example")
    page.wait_for_function("() => !location.hash.includes('Indeed')")
    assert page.input_value("#hyp") != first
    page.go_back()
    page.wait_for_function("() => document.getElementById('hyp').value.includes('Indeed')")
    wait_for_result(page)
    assert page.inner_text("#result") != shown
    page.go_back()
    page.wait_for_function("() => document.getElementById('hyp').value === ''")
    page.go_forward()
    page.wait_for_function("() => document.getElementById('hyp').value.includes('Indeed')")


def test_what_is_typed_while_the_service_starts_is_kept(
    few: ServedModels, open_page: OpenPage, warm_up_gate: Gate
) -> None:
    app = create_app(few, None, Limits(seconds=600), threads=1)
    with serve_app(app, Limits(seconds=600)) as address:
        page = open_page(address)
        page.wait_for_function(
            "() => document.getElementById('status').textContent.includes('is starting')"
        )
        # without an event, as in the moment before the page looks at what is typed
        page.evaluate("hyp => { document.getElementById('hyp').value = hyp; }", HYP)
        warm_up_gate.opened.set()
        page.wait_for_function("() => !document.getElementById('status').textContent")
        assert page.input_value("#hyp") == HYP
        page.close()  # before the service ends: a browser may ask for the icon at any time


def write_rows(file: Path, rows: int) -> None:
    """Row k shares k % 10 words of ten with its reference; each 50th has another number."""
    words = ["boats", "carry", "sand", "along", "wide", "rivers", "past", "green", "hills", "today"]
    others = ["bolt", "crane", "drum", "flute", "gate", "horn", "iron", "jug", "kite", "lamp"]
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
        writer.writerow(["id", "prediction", "reference", "system"])
        for k in range(rows):
            hyp = " ".join([*words[: k % 10], *others[k % 10 :]])
            dose = ("take 10 mg", "take 100 mg") if k % 50 == 0 else ("", "")
            texts = f"{hyp} {dose[0]}", f"{' '.join(words)} {dose[1]}"
            writer.writerow([f"r{k}", *texts, "ab"[k % 2]])


def shown_ids(page: Any) -> list[str]:
    ids: list[str] = page.locator("#scores .scroll tbody td:first-child").all_inner_texts()
    return ids


def test_a_large_table_is_sorted_page_by_page(
    service: str, open_page: OpenPage, tmp_path: Path
) -> None:
    file = tmp_path / "large.tsv"
    write_rows(file, 1000)
    page = open_page(service)
    page.select_option("#metric-name", "rouge-l")
    page.set_input_files("#file", file)
    page.wait_for_selector("#scores .scroll tbody tr")
    assert "large.tsv: 1,000 rows" in page.inner_text("#scores h2")
    assert page.is_hidden("#progress")
    assert shown_ids(page) == [f"r{k}" for k in range(100)]
    assert "rows 1 to 100 of 1,000" in page.inner_text(".pager")
    page.click(".pager button:has-text('Next')")
    assert shown_ids(page)[0] == "r100"
    score_head = "#scores .scroll th:has-text('rouge-l score')"
    page.click(f"{score_head} button")
    assert page.get_attribute(score_head, "aria-sort") == "ascending"
    assert shown_ids(page)[0] == "r10"  # no word of its reference, and no number
    page.click(f"{score_head} button")
    assert page.get_attribute(score_head, "aria-sort") == "descending"
    assert {int(name[1:]) % 10 for name in shown_ids(page)} == {9}
    scores = page.locator("#scores .scroll tbody td.number").all_inner_texts()
    assert scores == sorted(scores, reverse=True)
    page.check("#flagged")
    assert [name for name in shown_ids(page) if int(name[1:]) % 50] == []
    assert page.inner_text("#scores .scroll tbody tr td.flags") == "number differs: “10” for “100”"
    assert page.locator("#scores .scroll tbody tr:first-child mark").all_inner_texts() == [
        "10",
        "100",
    ]
    table = file.read_text("utf-8").splitlines()[1:]
    hyps, refs = zip(*(line.split("\t")[1:3] for line in table), strict=True)
    local = freight.load("rouge-l").score(hyps, refs)
    mean = page.inner_text("#scores tfoot tr:first-child td.number")
    assert float(mean) == pytest.approx(float(local["score"].mean()), abs=1e-4)
    page.click(".systems summary")
    rows = page.locator(".systems tbody tr").all_inner_texts()
    assert [row.split()[:2] for row in rows] == [["b", "500"], ["a", "500"]]
    region = page.evaluate(
        "() => (({ scrollWidth, clientWidth }) => [scrollWidth, clientWidth])"
        "(document.querySelector('#scores .scroll'))"
    )
    assert region[0] == region[1]  # nothing is cut off
    page.select_option("#metric-name", "chrf")
    page.wait_for_selector("#stale")  # many rows are scored again when that is asked for
    page.click("#again")
    page.wait_for_selector("#scores .scroll th:has-text('chrf score')")
    assert page.is_hidden("#stale")


def test_files_of_texts_and_their_references(
    service: str, open_page: OpenPage, tmp_path: Path
) -> None:
    hyps, refs = tmp_path / "hyp.txt", tmp_path / "ref.txt.gz"
    hyps.write_bytes("the cät\na dog\n".encode("cp1252"))
    refs.write_bytes(gzip.compress(b"the cat\na dog\n"))
    page = open_page(service)
    page.select_option("#metric-name", "bleu")
    page.set_input_files("#file", hyps)
    page.wait_for_selector("#status.alarm")
    assert "hyp.txt has no references; give a file of them" in page.inner_text("#status")
    page.set_input_files("#file-refs", refs)
    page.wait_for_function(
        "() => document.getElementById('status').textContent.includes('hyp.txt is not utf-8')"
    )
    page.select_option("#encoding", "cp1252")
    page.wait_for_selector("#scores .scroll tbody tr")
    assert "hyp.txt and ref.txt.gz: 2 rows" in page.inner_text("#scores h2")
    assert "cät" in page.inner_text("#scores .scroll tbody tr")
    assert page.locator("#scores tfoot tr").all_inner_texts()[1].startswith("\twhole corpus")


def test_scoring_a_file_can_be_cancelled(
    service: str, open_page: OpenPage, tmp_path: Path, scoring_gate: Gate
) -> None:
    file = tmp_path / "large.tsv"
    write_rows(file, 300)
    page = open_page(service)
    page.set_input_files("#file", file)
    page.wait_for_function(
        "() => document.getElementById('progress-text').textContent.includes('0 of 300 rows')"
    )
    page.set_input_files("#file", file)  # a second one takes the place of the first
    page.click("#cancel")
    page.wait_for_function(
        "() => document.getElementById('status').textContent.includes('not scored to the end')"
    )
    assert page.is_hidden("#progress")
    assert page.is_hidden("#table")
    scoring_gate.opened.set()
    page.set_input_files("#file", file)
    page.wait_for_selector("#scores .scroll tbody tr")


def test_files_that_are_too_large(service: str, open_page: OpenPage, tmp_path: Path) -> None:
    rows, size = tmp_path / "rows.tsv", tmp_path / "size.tsv"
    write_rows(rows, 5001)
    size.write_bytes(b"x" * (2**23 + 1))
    page = open_page(service)
    for file, message in ((rows, "rows.tsv has 5,001 rows; send at most 5,000"), (size, "bytes")):
        page.set_input_files("#file", file)
        page.wait_for_function(
            "text => document.getElementById('status').textContent.includes(text)", arg=message
        )
        assert page.is_hidden("#table")


@pytest.mark.parametrize("width", some_ways(1280, 1920))
def test_two_explanations_are_side_by_side(service: str, open_page: OpenPage, width: int) -> None:
    page = open_page(service, width=width)
    enter(page)
    page.check("[name=compare][value=hyp]")
    page.fill("#other-hyp", "an old man wore a coat")
    page.wait_for_selector("#result .fx-both")
    wait_for_result(page)
    left, right = (one.bounding_box() for one in page.locator("#result .fx-one").all())
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]
    assert right["x"] + right["width"] <= width
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_tags_in_texts_stay_text(service: str, open_page: OpenPage) -> None:
    page = open_page(service)
    hostile = '<img src=x onerror="document.title=1"><script>document.title=2</script>&amp;'
    enter(page, hostile, hostile[::-1])
    assert "onerror" in page.inner_text("#result")
    assert page.locator("#result img, #result script").count() == 0
    assert page.title().startswith("Freight")


def test_dark_and_light(service: str, open_page: OpenPage) -> None:
    page = open_page(service)

    def background() -> str:
        colour: str = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        return colour

    light = background()
    page.click("#theme")
    assert background() != light
    assert page.get_attribute("#theme", "aria-pressed") == "true"
    page.reload()
    page.wait_for_selector("#metric-name", state="attached")
    assert background() != light
    page.click("#theme")
    assert background() == light
    page = open_page(service, scheme="dark")
    assert background() != light


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_on_a_phone_nothing_is_cut_off(
    service: str, open_page: OpenPage, tmp_path: Path, path: str
) -> None:
    page = open_page(service, width=390, path=path)
    if path == "/":
        page.click("#metric-panel > summary")
        page.click("#compare-panel > summary")
        page.click("#example")
        page.wait_for_selector("#result .fx-flows")
        page.check("[name=compare][value=metric]")
        page.wait_for_selector("#result .fx-both")
        page.click("#file-panel > summary")
        file = tmp_path / "mine.tsv"
        write_rows(file, 120)
        page.set_input_files("#file", file)
        page.wait_for_selector("#scores .scroll tbody tr")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    small = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input[type=range]")]
            .filter((one) => one.offsetHeight && one.offsetHeight < 20)
            .map((one) => one.id || one.textContent)"""
    )
    assert small == []


def test_the_token_is_asked_for(few: ServedModels, open_page: OpenPage) -> None:
    with open_server(few, Limits(seconds=600), Access(token=SECRET)) as address:
        page = open_page(address, path="/?")
        page.wait_for_selector("#token")
        assert "token" in page.inner_text("#status")
        page.fill("#token", SECRET)
        page.keyboard.press("Tab")
        page.wait_for_selector("#metric-name", state="attached")
        enter(page)
        assert score(page)
        page.close()


def test_an_adapter_is_chosen_with_its_encoder_and_settings(
    tiny_model: Path, open_page: OpenPage
) -> None:
    encoders = load_encoders(["hashed", f"tiny={tiny_model}"], 256)
    models = ServedModels(encoders, adapters=[made_adapter(tiny_model)])
    models.metrics = {name: models.metrics[name] for name in ("freight", "lazy-emd")}
    with open_server(models, Limits(seconds=300)) as address:
        page = open_page(address)
        enter(page)
        before = score(page)
        page.select_option("#metric-adapter", "mine")
        page.wait_for_function(
            "before => !document.querySelector('#result .fx-score b')?.innerText.includes(before)",
            arg=before,
        )
        wait_for_result(page)
        assert page.input_value("#metric-encoder") == "tiny"
        assert page.inner_text("output[for=metric-floor]") == "0.1"
        trained = freight.load("freight", encoder=str(tiny_model), adapter=made_adapter(tiny_model))
        expected = trained.score([HYP], [REF])["score"][0]
        assert float(score(page)) == pytest.approx(expected, abs=1e-3)
        page.select_option("#metric-encoder", "hashed")
        wait_for_result(page)
        assert page.input_value("#metric-adapter") == ""
        page.close()


def test_the_form_shows_the_defaults_of_the_language(
    service: str, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if hashed vectors were of English words, and one-hot ones of any."""
    known = {"hashed": frozenset({"en"}), "one-hot": frozenset({"en", "de"})}
    by_identity = {freight.encoder(name).identity: known[name] for name in known}
    monkeypatch.setattr(models_module, "languages_of", lambda one: by_identity[one.identity])
    page = open_page(service)
    enter(page)
    page.select_option("#metric-name", "lazy-emd")
    wait_for_result(page)
    penalty = "label[for=metric-hyp] + output"
    assert page.inner_text(penalty) == "0.23"
    enter(page, GERMAN, GERMAN.replace("alte", "junge"))
    page.wait_for_function(f"document.querySelector('{penalty}').textContent === '0.009'")
    assert "default (one-hot)" in page.inner_text("#metric-encoder")
    assert page.get_attribute(penalty, "class") == ""
    assert "hyp=0.009" in (page.text_content("#result .fx-signature") or "")
    enter(page)
    page.wait_for_function(f"document.querySelector('{penalty}').textContent === '0.23'")
    assert "default (hashed)" in page.inner_text("#metric-encoder")
