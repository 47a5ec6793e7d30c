"""The page in a real browser, Chromium driven by Playwright. Skipped, with the reason, where there is none."""

import json
import os
import shutil

import pytest

from headcount.records.files import write_json as write
from headcount.reports.page.report import write_report


sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed; pip install playwright")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here, so the report is not opened; apt-get install chromium"
)


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(study, tmp_path_factory):
    folder = shutil.copytree(study, tmp_path_factory.mktemp("browser") / "study")
    return write_report(folder)[0].as_uri()


@pytest.fixture
def open_page(browser, address):
    """`open_page(width=..., dark=...)`: the page, which must neither complain nor ask for anything by its end."""
    opened = []

    def open_it(width: int = 1200, dark: bool = False, where: str = address):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", accept_downloads=True
        )
        page = context.new_page()
        complaints, requests = [], []
        page.on("console", lambda message: complaints.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(where)
        opened.append((context, complaints, requests, where))
        return page

    yield open_it
    for context, complaints, requests, where in opened:
        context.close()
        assert complaints == []
        assert [url for url in requests if not url.startswith(("data:", "blob:")) and url != where] == []


def head(page, number: int):
    return page.locator(".head-grid button").nth(number)


def test_hover_shows_click_locks_escape_unlocks(open_page):
    page = open_page()
    name, values = page.locator("#head-name"), page.locator("#head-values")
    head(page, 1).hover()
    assert name.inner_text() == head(page, 1).get_attribute("data-head") == "encoder.0.self.1"
    head(page, 2).hover()
    assert name.inner_text() == "decoder.0.self.0" and "n = 40" in values.inner_text()
    head(page, 2).click()
    assert head(page, 2).get_attribute("aria-pressed") == "true" and "(locked)" in values.inner_text()
    head(page, 1).hover()
    assert name.inner_text() == "decoder.0.self.0", "a locked head stays"
    page.keyboard.press("Escape")
    assert head(page, 2).get_attribute("aria-pressed") == "false"
    head(page, 0).hover()
    head(page, 1).hover()
    assert name.inner_text() == "encoder.0.self.1"


def test_a_cell_of_the_map_shows_its_weight_and_locks(open_page):
    page = open_page()
    head(page, 0).click()
    weights = page.evaluate("DATA.heads.examples[0].maps['encoder.0.self'].weights[0]")
    read = page.locator("#cell-values")
    page.locator('[data-cell="1,2"]').hover()
    assert read.inner_text().endswith(f"weight {weights[1][2]:.4f}")
    page.locator('[data-cell="0,3"]').click()
    page.locator('[data-cell="1,2"]').hover()
    assert read.inner_text().startswith("Locked.") and read.inner_text().endswith(f"weight {weights[0][3]:.4f}")
    page.keyboard.press("Escape")
    page.locator('[data-cell="1,2"]').hover()
    assert read.inner_text().endswith(f"weight {weights[1][2]:.4f}")


def test_examples_and_measures_can_be_chosen(open_page):
    page = open_page()
    examples = page.evaluate(
        "DATA.heads.examples.map((example) => [example.input, Object.keys(example.answers).length])"
    )
    for number, (asked, answers) in enumerate(examples):
        page.select_option("#example", str(number))
        assert page.locator(".answer").is_visible() == (answers > 0)
        if answers:
            assert asked in page.locator(".answer").inner_text()
    for key in page.evaluate("DATA.heads.measures.map((measure) => measure.key)"):
        page.select_option("#measure", key)
        assert head(page, 5).get_attribute("aria-label").startswith("decoder.0.cross.1: ")
    page.select_option("#measure", "drop_zero")
    before = head(page, 0).evaluate("node => getComputedStyle(node).backgroundColor")
    page.select_option("#measure", "entropy_bits")
    assert head(page, 0).evaluate("node => getComputedStyle(node).backgroundColor") != before


def test_switching_a_head_off_shows_the_answer_without_it(open_page):
    page = open_page()
    examples = page.evaluate("DATA.heads.examples")
    changed = next(
        (i, name)
        for i, example in enumerate(examples)
        for name, answer in example["answers"].items()
        if answer["answer"] != example["intact"]["answer"]
    )
    page.select_option("#example", str(changed[0]))
    page.locator(f'[data-head="{changed[1]}"]').click()
    assert page.locator("#without").count() == 0
    page.locator("#switch").click()
    example = examples[changed[0]]
    assert page.locator("#switch").get_attribute("aria-pressed") == "true"
    assert page.locator("#without").inner_text().startswith(example["answers"][changed[1]]["answer"])
    page.locator("#switch").click()
    assert page.locator("#without").count() == 0


def test_everything_works_by_keyboard_alone(open_page):
    page = open_page()

    def tab_to(selector: str) -> None:
        for _ in range(120):
            page.keyboard.press("Tab")
            if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", f"{selector} has no visible focus"
                return
        raise AssertionError(f"{selector} cannot be reached with Tab")

    tab_to(".theme")
    tab_to(".chart svg")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.locator(".chart .readout").first.inner_text().startswith("Locked.")
    page.keyboard.press("Escape")
    assert page.locator(".chart .readout").first.inner_text().startswith("Point at the chart")
    tab_to("#measure")
    tab_to(".head-grid button")
    first = page.evaluate("document.activeElement.dataset.head")
    page.keyboard.press("ArrowRight" if not first.endswith("cross.1") else "ArrowLeft")
    name = page.evaluate("document.activeElement.dataset.head")
    assert name != first and page.locator("#head-name").inner_text() == name
    page.keyboard.press("Enter")
    assert page.locator(f'[data-head="{name}"]').get_attribute("aria-pressed") == "true"
    tab_to(".map svg")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator("#cell-values").inner_text().startswith("Locked.")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    assert page.locator(f'[data-head="{name}"]').get_attribute("aria-pressed") == "false"
    tab_to("#switch")
    page.keyboard.press("Enter")
    assert page.locator("#without").count() == 1


def test_charts_choose_hide_and_read(open_page):
    page = open_page()
    chart = page.locator('[data-chart="length-sortedness"]')
    marks = chart.locator("svg[role=application] path[transform]")
    assert marks.count() == 2 * 2 * 4 - 1, "two encodings, two seeds, four lengths, one of them spared"
    chart.locator("select[data-tag=kind]").select_option("shuffle")
    chart.locator("select[data-tag=pooling]").select_option("mean")
    chart.get_by_role("button", name="learned").click()
    assert marks.count() == 2 * 4
    marks.last.hover()
    assert "alibi_directional, seed" in chart.locator(".readout").inner_text()
    assert "n = 200" in chart.locator(".readout").inner_text()


def test_downloads_are_made_in_the_page(open_page):
    page = open_page()
    with page.expect_download() as csv:
        page.get_by_role("button", name="Download length-sortedness as CSV").click()
    lines = csv.value.path().read_text().splitlines()
    assert lines[0].startswith("series,run,kind,pooling,length,accuracy,low,high,n") and len(lines) == 1 + 64 - 4
    with page.expect_download() as svg:
        page.get_by_role("button", name="Download pruning as SVG").click()
    text = svg.value.path().read_text()
    assert text.startswith("<svg") and "var(--" not in text and 'xmlns="http://www.w3.org/2000/svg"' in text
    with page.expect_download() as table:
        page.get_by_role("button", name="Download Heads by what they cost as CSV").click()
    assert len(table.value.path().read_text().splitlines()) == 1 + 6


@pytest.mark.parametrize("width", [320, 390, 768, 1200])
def test_the_page_never_scrolls_sideways(open_page, width):
    page = open_page(width)
    for details in page.locator("details > summary").all():
        details.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_dark_mode_by_preference_and_by_hand(open_page):
    def background(page):
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    light, dark = open_page(), open_page(dark=True)
    assert background(light) != background(dark)
    by_preference = background(dark)
    light.locator(".theme").click()
    assert background(light) == by_preference and light.locator(".theme").inner_text() == "Light"
    dark.locator(".theme").click()
    assert background(dark) != by_preference


def test_it_prints(open_page):
    page = open_page()
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible() and not page.locator(".tools").first.is_visible()


@pytest.mark.parametrize("part", ["runs/addition-tiny-0", "heads", "pruned", "length"])
def test_reports_of_single_parts_open_as_well(open_page, study, tmp_path, part):
    folder = shutil.copytree(study / part, tmp_path / "part")
    page = open_page(where=write_report(folder)[0].as_uri())
    assert page.locator("main section").count() >= 2


def test_the_grid_works_whatever_is_missing(open_page, study, tmp_path):
    for missing in sorted((study / "heads" / "results").iterdir()):
        folder = tmp_path / missing.stem
        shutil.copytree(study / "heads" / "results", folder / "results")
        (folder / "results" / missing.name).unlink()
        page = open_page(where=write_report(folder)[0].as_uri())
        head(page, 3).click()
        page.locator("#measure").press("ArrowDown")
        assert page.locator("#head-name").inner_text() == "decoder.0.self.1", missing.name
        page.close()


def test_hostile_text_is_shown_and_not_run(open_page, study, tmp_path):
    hostile = "</script><img src=x onerror=alert(1)>"
    folder = shutil.copytree(study, tmp_path / "study")
    for name, field in (("heads/results/toggles.json", "input"), ("length/results/lengths.json", "variant")):
        write(folder / name, [{**row, field: hostile} for row in json.loads((folder / name).read_text())])
    maps = json.loads((folder / "heads" / "results" / "maps.json").read_text())
    write(folder / "heads" / "results" / "maps.json", [{**row, "keys": [hostile] * len(row["keys"])} for row in maps])
    page = open_page(where=write_report(folder)[0].as_uri())
    assert page.locator("img[src=x]").count() == 0
    assert hostile in page.locator(".answer").inner_text() and hostile in page.locator("#example").inner_text()
    assert hostile in page.locator('[data-chart="length-sortedness"] .legend').inner_text()
    page.locator('[data-cell="0,0"]').hover()
    assert hostile in page.locator("#cell-values").inner_text()
