"""Share links: what each role sees and may do."""

import re
import urllib.request

import pytest
from playwright.sync_api import Page, expect

from session_server.identity.exposure import outside_address
from tests.effort import PATIENCE
from tests.page.browser import People, phone_options
from tests.page.locators import field, question
from tests.page.stage import Stage, http, one_of, text
from tests.servers import serving


def shared(page: Page, role: str, name: str = "") -> str:
    """Makes a link in the dialog and returns it."""
    page.get_by_role("button", name="Share", exact=True).click()
    page.locator("dialog").get_by_role("radio", name=role).check()
    if name:
        page.get_by_label("Name (optional)").fill(name)
    page.get_by_role("button", name="Create link").click()
    url = page.get_by_label("The link", exact=True).input_value()
    page.get_by_role("button", name="Close").click()
    return url


def opening(stage: Stage, name: str) -> str:
    return stage.form(name, text("name"), one_of("city", "Oslo", "Lisbon"), title=name.capitalize())


def test_guest_sees_waiting_questions_in_title_and_list(person: People, stage: Stage) -> None:
    uri = stage.session("alerted", "Alerted")
    stage.begins(uri)
    ana = person("Ana").goes_to("#/s/alerted")
    url = shared(ana, "Answer")
    guest = person(None).page
    guest.goto(url.partition("#")[0])
    row = guest.locator(".session-row", has_text="Alerted")
    expect(row).to_have_attribute("data-activity", "running")
    stage.asks(uri, text("name"))
    expect(row).to_have_attribute("data-activity", "input-needed")
    expect(guest).to_have_title("(1) session-server")
    stage.act(uri, "inputCompleted", requestId="r", response="cancel")
    expect(row).to_have_attribute("data-activity", "running")
    expect(guest).to_have_title("session-server")


def test_observer_sees_everything_and_why_controls_are_disabled(
    person: People, stage: Stage
) -> None:
    uri = opening(stage, "watched")
    stage.tool(uri, "c1", toolInput="rm")
    ana = person("Ana").goes_to("#/s/watched")
    url = shared(ana, "View")
    eve = person(None).page
    eve.goto(url)
    expect(eve.get_by_text("You can view this session")).to_be_visible()
    field(ana, "name").fill("Norway")
    expect(field(eve, "name")).to_have_value("Norway")
    expect(field(eve, "name")).to_have_attribute("readonly", "")
    expect(question(eve, "city").get_by_label("Oslo")).to_be_disabled()
    expect(eve.locator(".request-actions button:visible")).to_have_count(0)
    expect(eve.get_by_role("button", name="Approve")).to_be_disabled()
    # The reason is shown once, and disabled controls refer to it.
    expect(eve.get_by_text("but not answer or change").filter(visible=True)).to_have_count(1)
    for off in (eve.locator(".request"), eve.locator(".tool-ask")):
        expect(off).to_have_accessible_description(re.compile("You can view this session"))
    expect(eve.locator(".composer-box")).to_be_hidden()
    expect(eve.get_by_role("button", name="Share", exact=True)).to_be_hidden()
    expect(eve.locator(".session-row")).to_have_count(1)
    # The host would not have it either, whatever a page allows.
    described = eve.evaluate(
        """async () => {
          const { Host } = await import("/page/0/client/host.js");
          const token = sessionStorage.getItem("session-server.token");
          const host = new Host({ token, storage: new Map() && undefined });
          host.start();
          const session = host.open("ahp-session:/watched");
          try {
            await session.dispatch({ type: "session/titleChanged", title: "Mine" });
            return "done";
          } catch (error) {
            return error.message;
          } finally {
            host.stop();
          }
        }"""
    )
    assert described == "You may watch this session, but not change it."


def test_answerer_answers_on_a_phone_under_their_name(person: People, stage: Stage) -> None:
    uri = opening(stage, "shared")
    stage.tool(uri, "c1", toolInput="rm")
    ana = person("Ana").goes_to("#/s/shared")
    url = shared(ana, "Answer", "Ben")
    phone = person(None, **phone_options()).page
    phone.goto(url)
    expect(phone.locator(".request")).to_be_visible()
    expect(phone.locator(".banner")).to_contain_text("Your link works until")
    assert "tkn" not in phone.url
    field(phone, "name").fill("Norway")
    expect(question(ana, "name")).to_contain_text("Ben is writing")
    question(phone, "name").get_by_role("button", name="Mark done").tap()
    expect(question(ana, "name")).to_contain_text("Done by Ben")
    expect(phone.get_by_role("button", name="Approve")).to_be_disabled()
    expect(phone.get_by_text("Only the owner can change").filter(visible=True)).to_have_count(1)
    phone.reload()
    expect(question(phone, "name")).to_contain_text("Done by you")
    phone.get_by_role("button", name="Review answers", exact=True).tap()
    phone.get_by_role("button", name="Send answers", exact=True).tap()
    expect(ana.locator(".outcome-text")).to_contain_text("Ben answered")


def test_qr_code_is_rebuilt_from_its_paths(person: People) -> None:
    public = ("--public-url", "https://sessions.example.com", "--without-connection-token")
    with serving("memory:", "--demo", *public) as server:
        ana = person("Ana", server.url).goes_to("#/s/demo")
        ana.get_by_role("button", name="Share", exact=True).click()
        ana.get_by_role("button", name="Create link").click()
        code = ana.get_by_role("img", name="The link as a QR code")
        expect(code).to_be_visible()
        assert code.locator("path").count() == 2
        # A module is a stroke of one unit; a link has hundreds of them.
        assert len(code.locator("path.qr-dark").get_attribute("d") or "") > 1_000


def test_loopback_link_has_no_qr_code(person: People, stage: Stage) -> None:
    opening(stage, "drawn")
    ana = person("Ana").goes_to("#/s/drawn")
    ana.get_by_role("button", name="Share", exact=True).click()
    ana.get_by_role("button", name="Create link").click()
    expect(ana.locator(".share-warning")).to_contain_text("loopback")
    expect(ana.get_by_role("img", name="The link as a QR code")).to_have_count(0)
    expect(ana.get_by_label("The link", exact=True)).to_be_visible()


def test_person_without_a_name_is_asked_for_one_when_others_are_present(
    person: People, stage: Stage
) -> None:
    opening(stage, "names")
    ana = person(None).goes_to("#/s/names")
    expect(ana.locator(".request")).to_be_visible()
    expect(ana.locator(".name-prompt")).to_be_hidden()
    field(ana, "name").focus()
    ben = person("Ben").goes_to("#/s/names")
    # It is asked where it is seen, and takes nothing from who is busy.
    expect(ana.get_by_placeholder("Your name")).to_be_in_viewport()
    expect(field(ana, "name")).to_be_focused()
    ana.get_by_placeholder("Your name").fill("Ana")
    ana.get_by_role("button", name="Save").click()
    expect(ben.locator(".person")).to_have_count(2)
    expect(ben.locator(".people")).to_contain_text("Ana")
    field(ana, "name").fill("x")
    field(ana, "name").blur()
    expect(question(ben, "name")).to_contain_text("Draft by Ana")


def test_page_works_over_plain_http_in_a_lan(person: People) -> None:
    """Such a page is not a secure context: no `crypto.randomUUID`, no clipboard, no notices."""
    address = outside_address()
    if address is None:
        pytest.skip("this machine has no address but its own")
    options = ("--demo", "--host", "0.0.0.0", "--connection-token", "a-token-for-this-test")
    with serving("memory:", *options) as server:
        url = f"http://{address}:{server.port}"
        ana = person("Ana", url, **phone_options()).goes_to("?tkn=a-token-for-this-test#/s/demo")
        expect(ana.locator(".request")).to_be_visible()
        assert not ana.evaluate("isSecureContext")
        field(ana, "name").fill("Norway")
        expect(question(ana, "name")).to_contain_text("Draft saved")
        ana.get_by_role("button", name="Share", exact=True).tap()
        ana.get_by_role("button", name="Create link").tap()
        link = ana.get_by_label("The link", exact=True)
        expect(link).to_have_value(re.compile(re.escape(url)))
        ana.get_by_role("button", name="Copy", exact=True).tap()
        expect(ana.locator(".toast")).to_have_text("Link copied.")
        guest = person(None).page
        guest.goto(link.input_value())
        expect(field(guest, "name")).to_have_value("Norway")
        # The token is out of the address, and still opens the door in a new tab.
        again = guest.context.new_page()
        again.goto(f"{url}/#/s/demo")
        expect(field(again, "name")).to_have_value("Norway")


def test_people_without_a_name_get_distinct_shapes(person: People, stage: Stage) -> None:
    opening(stage, "nameless")
    pages = [person(None).goes_to("#/s/nameless") for _ in range(3)]
    for page in pages:
        expect(page.locator(".person")).to_have_count(3)
    seen = [marks(page) for page in pages]
    # Three shapes, and each device shows the same three.
    assert len(set(seen[0])) == 3
    assert set(seen[0]) == set(seen[1]) == set(seen[2])
    expect(pages[0].locator(".person[data-self]")).to_contain_text("You, without a name")


def marks(page: Page) -> list[str]:
    return page.locator(".person").evaluate_all(
        "people => people.map(each => each.dataset.hue + each.querySelector('path').outerHTML)"
    )


def test_recording_is_marked_and_read_only(person: People, stage: Stage) -> None:
    uri = opening(stage, "taped")
    stage.tool(uri, "c1", toolInput="rm")
    tape = urllib.request.urlopen(f"{stage.url}/v1/sessions/taped/export", timeout=PATIENCE).read()
    http("DELETE", f"{stage.url}/v1/sessions/taped")
    played = urllib.request.Request(
        f"{stage.url}/v1/replay", tape, {"Content-Type": "application/x-ndjson"}, method="POST"
    )
    urllib.request.urlopen(played, timeout=PATIENCE).close()
    ana = person("Ana").goes_to("#/s/taped")
    expect(ana.locator(".session-head")).to_contain_text("Recording")
    expect(ana.locator(".banner")).to_contain_text("This is a recording.")
    expect(field(ana, "name")).to_have_attribute("readonly", "")
    expect(ana.get_by_role("button", name="Approve")).to_be_disabled()
    expect(ana.locator(".composer-box")).to_be_hidden()
    expect(ana.get_by_role("button", name="Share", exact=True)).to_be_hidden()
    ana.get_by_role("button", name="Session menu").click()
    expect(ana.get_by_role("menuitem")).to_have_text(["Copy link"])
    # It asks nobody: neither the list nor the title counts it.
    row = ana.locator(".session-row", has_text="Taped")
    expect(row).to_have_attribute("data-activity", "recording")
    expect(row.locator(".row-answer")).to_be_hidden()
    expect(ana.locator(".group-head").last).to_contain_text("Recordings")
