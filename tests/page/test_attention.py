"""Title, badge, notifications and sound: once per session that needs input and is not in view.

Notices, sounds, badges and whether anybody looks are the browser's; the tests listen in on those.
"""

import sys
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.page.browser import People, Person
from tests.page.locators import field
from tests.page.stage import Stage, text
from tests.servers import ServerProcess, sqlite_store

SCENE_HOST = (sys.executable, "-m", "tests.page.scene_host")
LISTENING = """
  globalThis.notices = [];
  let isAway = false;
  const heard = { notices: 0, open: 0, sounds: 0, badge: 0 };
  const tell = news => {
    Object.assign(heard, news);
    heard.notices = notices.length;
    heard.open = notices.filter(each => each.isOpen).length;
    Object.assign(document.documentElement.dataset, heard);
  };
  globalThis.leave = isGone => { isAway = isGone; };
  globalThis.Notification = class extends EventTarget {
    static permission = "granted";
    static requestPermission = async () => "granted";
    isOpen = true;
    constructor(title, options) {
      super();
      Object.assign(this, { title, body: options.body });
      notices.push(this);
      tell();
    }
    close() {
      this.isOpen = false;
      tell();
    }
  };
  const Sound = globalThis.AudioContext;
  globalThis.AudioContext = class extends Sound {
    constructor() {
      super();
      tell({ sounds: heard.sounds + 1 });
    }
  };
  navigator.setAppBadge = async badge => tell({ badge });
  navigator.clearAppBadge = async () => tell({ badge: 0 });
  const seen = Object.getOwnPropertyDescriptor(Document.prototype, "visibilityState").get;
  Object.defineProperty(document, "visibilityState", {
    get: () => (isAway ? "hidden" : seen.call(document)),
  });
  document.hasFocus = () => !isAway;
"""
"""What was heard stands on the page's root, where it can be waited for."""


def listening(person: Person, place: str = "") -> Page:
    person.context.add_init_script(LISTENING)
    return person.goes_to(place)


def choose(page: Page, words: str) -> None:
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("menuitemcheckbox", name=words).click()


def away(page: Page, *, is_away: bool = True) -> None:
    page.evaluate("isAway => leave(isAway)", is_away)


def notices(page: Page) -> list[str]:
    found: list[str] = page.evaluate("notices.map(each => `${each.title}: ${each.body}`)")
    return found


def heard(page: Page, **counts: int) -> None:
    for name, count in counts.items():
        expect(page.locator("html")).to_have_attribute(f"data-{name}", str(count))


def test_notification_comes_once_opens_the_question_and_closes_when_answered(
    person: People, stage: Stage
) -> None:
    uri = stage.session("notice", "Deploy")
    stage.begins(uri)
    ana = listening(person("Ana"))
    expect(ana.locator(".session-row", has_text="Deploy")).to_be_visible()
    choose(ana, "Notify me when input is needed")
    expect(ana.locator(".toast")).to_have_text("You’ll be notified when input is needed.")
    away(ana)
    stage.asks(uri, text("name"), text("place"))
    heard(ana, notices=1, badge=1, sounds=0)
    assert notices(ana) == ["Deploy: Needs your input"]
    expect(ana).to_have_title("(1) session-server")

    away(ana, is_away=False)
    ana.evaluate("notices[0].dispatchEvent(new Event('click'))")
    expect(field(ana, "name")).to_be_focused()
    heard(ana, notices=1, open=0)

    # Another one, answered by somebody else, takes its notice with it.
    ana.evaluate("location.hash = '#/'")
    stage.act(uri, "inputCompleted", requestId="r", response="cancel")
    heard(ana, badge=0)
    away(ana)
    stage.asks(uri, text("name"), name="again")
    heard(ana, notices=2, open=1)
    stage.act(uri, "inputCompleted", requestId="again", response="cancel")
    heard(ana, notices=2, open=0)
    expect(ana).to_have_title("session-server")


def test_no_notification_for_the_session_in_view(person: People, stage: Stage) -> None:
    here, there = (stage.session(name, name.capitalize()) for name in ("here", "there"))
    stage.begins(here)
    stage.begins(there)
    ana = listening(person("Ana"), "#/s/here")
    expect(ana.locator(".working")).to_be_visible()
    choose(ana, "Notify me when input is needed")
    choose(ana, "Play a sound")
    heard(ana, sounds=1)  # what it will sound like
    stage.asks(here, text("name"))
    expect(ana.locator("#announcer")).to_have_text("New question: Some questions")
    expect(ana).to_have_title("(1) Here · session-server")
    heard(ana, notices=0, sounds=1)

    # Of what is elsewhere on the page in view there is a sound and a word, but no notice.
    stage.asks(there, text("name"))
    heard(ana, sounds=2)
    expect(ana.locator("#announcer")).to_have_text("There needs input")
    assert notices(ana) == []


def test_no_second_notification_after_a_reconnect(person: People, tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    server = ServerProcess(store, command=SCENE_HOST)
    stage = Stage(server)
    before, meanwhile = stage.session("before", "Before"), stage.session("later", "Later")
    stage.begins(before)
    stage.begins(meanwhile)
    ana = listening(person("Ana", server.url))
    expect(ana.locator(".session-row")).to_have_count(2)
    choose(ana, "Notify me when input is needed")
    away(ana)
    stage.asks(before, text("name"))
    heard(ana, notices=1)
    server.kill()
    stage.close()
    again = ServerProcess(store, port=server.port, command=SCENE_HOST)
    try:
        expect(ana.locator(".connection-text")).to_have_text("live")
        stage = Stage(again)
        stage.joins(before)
        stage.act(before, "titleChanged", title="Still waiting")
        expect(ana.locator(".session-row", has_text="Still waiting")).to_be_visible()
        stage.joins(meanwhile)
        stage.asks(meanwhile, text("name"))
        heard(ana, notices=2)
        assert notices(ana) == ["Before: Needs your input", "Later: Needs your input"]
        stage.close()
    finally:
        again.kill()


def test_questions_from_before_are_counted_without_a_notification(
    person: People, stage: Stage
) -> None:
    stage.form("old", text("name"), title="Old")
    ana = person("Ana")
    ana.context.add_init_script("localStorage.setItem('session-server.notify', 'yes')")
    page = listening(ana)
    away(page)
    row = page.locator(".session-row", has_text="Old")
    expect(row.locator(".row-answer")).to_be_visible()
    waiting = page.locator(".session-row[data-activity=input-needed]").count()
    heard(page, badge=waiting)
    assert notices(page) == []
    # The archive hides no open question.
    row.hover()
    row.get_by_role("button", name="Archive: Old").click()
    expect(row.get_by_role("button", name="Unarchive: Old")).to_have_count(1)
    heard(page, badge=waiting)
