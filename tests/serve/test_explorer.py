"""The explorer in a real browser: type, slide, compare, upload; light, dark, and on a phone."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import freight
from freight.serve.access import Access
from freight.serve.jobs import Limits
from freight.serve.models import ServedModels, load_encoders
from made_adapters import made_adapter
from serve.conftest import SECRET, open_server

HYP, REF = "the young boy wore a coat", "an old man wore a slicker"
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
        if path == "/":
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
    assert "try an example" in page.inner_text("#result")
    page.click("#example")
    page.wait_for_selector("#result .fx-flows")
    for part in ("Additions", "Omissions", "Heat maps", "Hypothesis", "Reference"):
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
    page.on("request", lambda request: sent.append(request.url))
    page.fill("#refs textarea", REF)
    page.type("#hyp", HYP)
    page.clock.run_for(PAUSE - 1)
    assert sent == []
    page.clock.run_for(1)
    wait_for_result(page)
    assert [url.rsplit("/", 1)[1] for url in sent] == ["fragment"]
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
    page.select_option("#metric-encoder", "one-hot")
    wait_for_result(page)
    signature = page.inner_text("#result .fx-signature")
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
    head, *lines = saved["CSV"].splitlines()
    assert head.split(",") == list(rows[0])
    assert lines[0].split(",")[1] == str(rows[0]["emd:transport"])
    page.click("#table .close")
    assert not page.is_visible("#table")


def test_errors_are_shown(service: str, open_page: OpenPage, tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    file.write_text("a,b\n1,2\n", encoding="utf-8")
    page = open_page(service)
    page.set_input_files("#file", file)
    page.wait_for_selector("#status.alarm")
    assert "no column hyp" in page.inner_text("#status")
    enter(page, hyp="x" * 301)
    assert "301 characters" in page.inner_text("#status")
    enter(page)
    assert page.locator("#status.alarm").count() == 0


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
def test_on_a_phone_nothing_is_cut_off(service: str, open_page: OpenPage, path: str) -> None:
    page = open_page(service, width=390, path=path)
    if path == "/":
        page.click("#metric-panel > summary")
        page.click("#compare-panel > summary")
        page.click("#example")
        page.wait_for_selector("#result .fx-flows")
        page.check("[name=compare][value=metric]")
        page.wait_for_selector("#result .fx-both")
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
