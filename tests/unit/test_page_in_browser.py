"""The page in a real browser: no request, no message on the console, hostile text inert, readable in both languages and on every screen.

Needs Chromium (or Chrome) with its driver, and selenium; skipped where one of them is missing.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from forensics.report.page import Look
from forensics.report.web import page
from tests.unit import page_maker, sample_triage
from tests.unit.test_report_page import ATTACKS

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
MISSING = [
    name
    for name, there in (
        ("Chromium", BROWSER), ("chromedriver", DRIVER), ("selenium", importlib.util.find_spec("selenium")),
        ("axe-selenium-python", importlib.util.find_spec("axe_selenium_python")),
    )
    if not there
]  # fmt: skip
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")

CONTRAST = """
const number = colour => (colour.match(/[\\d.]+/g) || []).map(Number);
const light = ([r, g, b]) => {
  const [x, y, z] = [r, g, b].map(v => { v /= 255; return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
  return .2126 * x + .7152 * y + .0722 * z;
};
const ground = node => {
  for (let at = node; at; at = at.parentElement) {
    const found = number(getComputedStyle(at).backgroundColor);
    if (found.length === 3 || found[3] > 0) return found;
  }
  return [255, 255, 255];
};
const drawn = word => {  // what was painted last below the middle of the word
  const own = word.getBoundingClientRect(), x = own.x + own.width / 2, y = own.y + own.height / 2;
  let below = null;
  for (const shape of word.ownerSVGElement.querySelectorAll('rect')) {
    if (!(shape.compareDocumentPosition(word) & Node.DOCUMENT_POSITION_FOLLOWING)) break;
    const box = shape.getBoundingClientRect(), fill = getComputedStyle(shape).fill;
    if (fill !== 'none' && box.x <= x && x <= box.right && box.y <= y && y <= box.bottom) below = number(fill);
  }
  return below || ground(word.ownerSVGElement.parentElement);
};
const weak = [];
for (const node of document.querySelectorAll('.page *')) {
  const own = [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim());
  if (!own || !node.getClientRects().length || node.tagName === 'title') continue;
  const drawing = node.ownerSVGElement, style = getComputedStyle(node);
  const [a, b] = [light(number(drawing ? style.fill : style.color)), light(drawing ? drawn(node) : ground(node))];
  const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  if (ratio < 4.5) weak.push(`${node.tagName} ${node.getAttribute('class') || ''} ${ratio.toFixed(2)}: ${node.textContent.slice(0, 40)}`);
}
return weak;
"""


class Browser:
    def __init__(self, driver: Any, folder: Path) -> None:
        self.driver, self.folder = driver, folder
        self.pages = 0

    def show(self, source: str, width: int = 1280, scheme: str = "light") -> None:
        self.pages += 1
        target = self.folder / f"{self.pages}.html"
        target.write_text(source, encoding="utf-8", errors="strict")
        self.driver.get_log("performance"), self.driver.get_log("browser")
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        self.driver.get(target.as_uri())

    def run(self, script: str) -> Any:
        return self.driver.execute_script(script)

    def open_all(self) -> None:
        self.run("document.querySelectorAll('details').forEach(part => part.open = true)")

    def requests(self) -> list[str]:
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = BROWSER or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield Browser(driver, tmp_path_factory.mktemp("pages"))
    finally:
        driver.quit()


def render(triage: object = None, lang: str = "en") -> str:
    return page.render(triage or page_maker.full(), Look(lang=lang))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["full", "unknown"])
def test_the_page_asks_for_nothing_and_has_nothing_to_complain_of(browser: Browser, kind: str) -> None:
    browser.show(render(page_maker.full() if kind == "full" else sample_triage.damaged()))
    browser.open_all()
    assert browser.requests() == [browser.driver.current_url]
    assert browser.driver.get_log("browser") == []
    assert browser.run("return getComputedStyle(document.querySelector('.page')).backgroundColor") == "rgb(245, 246, 248)"  # the style is let in


def test_hostile_text_is_shown_and_does_nothing(browser: Browser) -> None:
    browser.show(render(page_maker.full(" ".join(ATTACKS))))
    browser.open_all()
    assert browser.run("return window.hit === undefined")
    assert browser.run("return document.querySelectorAll('script, iframe, img, base, meta[http-equiv=refresh], [onload], [onerror]').length") == 0
    assert browser.requests() == [browser.driver.current_url]
    assert browser.driver.get_log("browser") == []
    assert "<script>window.hit=1</script>" in browser.run("return document.querySelector('.log').textContent")


@pytest.mark.parametrize(("lang", "scheme"), [("en", "light"), ("zh", "dark"), ("en", "dark"), ("zh", "light")])
def test_every_text_stands_out_from_its_ground(browser: Browser, lang: str, scheme: str) -> None:
    browser.show(render(lang=lang), scheme=scheme)
    browser.open_all()
    browser.run("document.querySelectorAll('.timeline .draw').forEach(part => part.style.display = 'block')")
    assert browser.run(CONTRAST) == []


@pytest.mark.parametrize("kind", ["full", "unknown", "checks"])
def test_the_rules_of_wcag_hold(browser: Browser, kind: str) -> None:
    browser.show(render(sample_triage.damaged() if kind == "unknown" else page_maker.full()))
    if kind == "full":
        browser.open_all()
    axe = files("axe_selenium_python").joinpath("node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")
    browser.run(axe)
    found = browser.driver.execute_async_script(
        "const done = arguments[0]; axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa']})"
        ".then(result => done(result.violations), error => done([{id: String(error), nodes: []}]))"
    )
    assert [(one["id"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found] == []


def test_the_language_can_be_switched_without_script(browser: Browser) -> None:
    browser.show(render(lang="en"))
    shown = "return getComputedStyle(document.querySelector('h2 [lang=%s]')).display"
    assert (browser.run(shown % "en"), browser.run(shown % "zh")) == ("inline", "none")
    browser.run("document.querySelector('label[for=in-zh]').click()")
    assert (browser.run(shown % "en"), browser.run(shown % "zh")) == ("none", "inline")


def test_the_colours_can_be_chosen_against_the_system(browser: Browser) -> None:
    browser.show(render(), scheme="light")
    browser.run("document.querySelector('label[for=theme-dark]').click()")
    assert browser.run("return getComputedStyle(document.querySelector('.page')).backgroundColor") == "rgb(14, 18, 22)"


@pytest.mark.parametrize("width", [340, 768, 1280, 2200])
def test_the_page_fits_every_screen(browser: Browser, width: int) -> None:
    browser.show(render(page_maker.full("a-name-" + "without-a-break-" * 3 + "x" * 300)), width=width)
    browser.open_all()
    assert browser.run("return document.documentElement.scrollWidth") <= width


def test_all_of_it_is_printed(browser: Browser) -> None:
    browser.show(render(), width=700)
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        hidden = "return [...document.querySelectorAll('details.diagnosis .body')].filter(part => !part.getClientRects().length).length"
        assert browser.run(hidden) == 0
        assert browser.run("return getComputedStyle(document.querySelector('.bar')).display") == "none"
        assert browser.run("return [...document.querySelectorAll('.draw svg')].filter(svg => svg.getBoundingClientRect().right > 700).length") == 0
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
