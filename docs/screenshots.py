"""The pictures in `docs/images`, taken of the real page: `python -m docs.screenshots`.

Two people answer one form, on a desktop and on a phone; then the other views. Twice as many
dots as the page is wide, for screens that show them.
"""

import base64
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

from tests.page.browser import WHOLE, Person, chromium, phone_options
from tests.page.locators import arrive, field, question
from tests.page.stage import Stage
from tests.servers import serving

IMAGES = Path(__file__).parent / "images"
SCENE_HOST = (sys.executable, "-m", "tests.page.scene_host")
DESK: dict[str, Any] = {"viewport": {"width": 1100, "height": 780}, "device_scale_factor": 2}
SHELF = """
  body { margin: 0; display: flex; gap: 36px; align-items: center; padding: 36px;
         width: max-content; background: #e9ebf5; }
  img { display: block; border-radius: 14px; box-shadow: 0 12px 40px rgb(20 20 60 / 20%); }
  img.phone { border-radius: 34px; border: 7px solid #1b1b20; }
"""

PLAN = """## Plan

I compared the **last three** deploys. Two things stand out:

1. `db/migrate` takes about 40 s
2. the canary ran at *5 %* only

| step | time | owner |
|------|------|-------|
| build | 3 min | ci |
| canary | 10 min | ana |
"""
CITIES = [
    {"id": "oslo", "label": "Oslo", "description": "Fjords and museums", "recommended": True},
    {"id": "lisbon", "label": "Lisbon", "description": "Hills and the sea"},
    {"id": "kyoto", "label": "Kyoto", "description": "Temples and gardens"},
]
OPTIONS = [
    {"id": "once", "label": "Run once", "kind": "approve"},
    {"id": "always", "label": "Always in this session", "kind": "approve"},
    {"id": "no", "label": "Don’t run", "kind": "deny"},
]


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    public = ("--public-url", "https://sessions.example.com")
    with serving("memory:", *public, command=SCENE_HOST) as server, chromium(WHOLE) as browser:
        stage = Stage(server)
        set_the_scene(stage)
        together(browser, server.url)
        for theme in ("light", "dark"):
            approval(browser, server.url, theme)
        phones(browser, server.url)
        stage.close()


def set_the_scene(stage: Stage) -> None:
    report = stage.session("report", "Quarterly report")
    stage.begins(report, text="Write the report")
    stage.ends(report)
    failed = stage.session("import", "Import customers")
    stage.begins(failed)
    stage.act(failed, "error", turnId="t", error={"errorType": "x", "message": "Three columns"})
    running = stage.session("evaluation", "Nightly evaluation")
    stage.begins(running)
    stage.act(running, "activityChanged", activity="Running 34 of 120 cases")
    deploy = stage.session("deploy", "Deploy the billing service")
    stage.begins(deploy, text="Ship billing 4.2 to staging, then production if it looks fine.")
    stage.says(deploy, "Looking at the last deploys first.", kind="reasoning")
    stage.says(deploy, PLAN)
    read = {"name": "git_log", "shown": "git log", "invocationMessage": "Read the last commits"}
    stage.tool(deploy, "c1", confirmed="not-needed", **read)
    stage.tool_done(deploy, "c1", pastTenseMessage="Read 20 commits")
    text, line = "Apply the migration to staging", "./manage.py migrate --database staging"
    apply = {"invocationMessage": text, "toolInput": line, "editable": True, "options": OPTIONS}
    stage.tool(deploy, "c2", shown="Shell", **apply)
    offsite = stage.session("offsite", "Weekly planning")
    stage.begins(offsite, text="Collect what we need for the offsite")
    stage.says(offsite, "I need a few things from you both.")
    name = {"kind": "text", "id": "name", "title": "Name", "message": "Short and memorable."}
    city = {"kind": "single-select", "id": "city", "title": "City", "message": "Where to?"}
    count = {"kind": "integer", "id": "people", "title": "People", "message": "How many come?"}
    stage.asks(
        offsite,
        {**name, "required": True, "max": 60},
        {**city, "required": True, "options": CITIES, "allowFreeformInput": True},
        {**count, "min": 1, "max": 40, "defaultValue": 12},
        message="Planning the offsite",
    )


def together(browser: Browser, url: str) -> None:
    ana = Person(browser, url, "Ana", **DESK)
    ben = Person(browser, url, "Ben", color_scheme="dark", **phone_options())
    desk, phone = arrive([ana, ben], "offsite")
    field(desk, "name").fill("Fjord days")
    question(desk, "name").get_by_role("button", name="Mark done").click()
    desk.mouse.move(0, 0)
    question(phone, "city").get_by_text("Lisbon").tap()
    expect(question(desk, "city")).to_contain_text("Ben is answering")
    expect(question(phone, "name")).to_contain_text("Done by Ana")
    for page in (desk, phone):
        page.locator(".scroller").evaluate("scroller => scroller.scrollTop = 0")
    shelve(browser, "together.png", picture(desk, "desk", 900), picture(phone, "phone", 316))
    ana.closes()
    ben.closes()


def approval(browser: Browser, url: str, theme: str) -> None:
    ana = Person(browser, url, "Ana", color_scheme=theme, **DESK)
    page = ana.goes_to("#/s/deploy")
    expect(page.get_by_role("button", name="Run once")).to_be_visible()
    page.screenshot(path=IMAGES / f"session-{theme}.png")
    ana.closes()


def phones(browser: Browser, url: str) -> None:
    ben = Person(browser, url, "Ben", **phone_options())
    page = ben.goes_to()
    expect(page.locator(".session-row").first).to_be_visible()
    pictures = [picture(page, "phone", 300)]
    page.get_by_role("link", name="Deploy the billing service").tap()
    expect(page.get_by_role("button", name="Run once")).to_be_focused()
    pictures.append(picture(page, "phone", 300))
    page.get_by_role("button", name="Share", exact=True).tap()
    page.get_by_role("button", name="Create link").tap()
    expect(page.locator(".qr")).to_be_visible()
    pictures.append(picture(page, "phone", 300))
    shelve(browser, "phones.png", *pictures)
    ben.closes()


def picture(page: Page, kind: str, width: int) -> str:
    data = base64.b64encode(page.screenshot()).decode()
    return f'<img class="{kind}" width="{width}" src="data:image/png;base64,{data}">'


def shelve(browser: Browser, name: str, *pictures: str) -> None:
    page = browser.new_page(viewport={"width": 1500, "height": 100}, device_scale_factor=2)
    page.set_content(f"<!doctype html><style>{SHELF}</style>{''.join(pictures)}")
    page.locator("body").screenshot(path=IMAGES / name)
    page.close()


if __name__ == "__main__":
    main()
