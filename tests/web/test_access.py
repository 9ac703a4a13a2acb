"""Links for others: what each role sees and may do, and why it may not."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from session_server.identity.addresses import outside_address
from tests.servers import ServerProcess, serving
from tests.web.browser import Person, phone_options
from tests.web.looking import field, question
from tests.web.stage import Stage, http, one_of, text

People = Callable[..., Person]
pytestmark = pytest.mark.slow


def shared(page: Page, role: str, name: str = "") -> str:
    """Makes a link in the dialog and returns it."""
    page.get_by_role("button", name="Share", exact=True).click()
    page.locator("dialog").get_by_role("radio", name=role).check()
    if name:
        page.get_by_label("Name, if it is for one person").fill(name)
    page.get_by_role("button", name="Make a link").click()
    url = page.get_by_label("The link", exact=True).input_value()
    page.get_by_role("button", name="Close").click()
    return url


def opening(stage: Stage, name: str) -> str:
    uri = stage.session(name, name.capitalize())
    stage.begins(uri)
    stage.asks(uri, text("name"), one_of("city", "Oslo", "Lisbon"))
    return uri


def test_an_observer_sees_all_and_is_told_why_nothing_can_be_done(
    person: People, stage: Stage
) -> None:
    uri = opening(stage, "watched")
    stage.tool(uri, "c1", toolInput="rm")
    ana = person("Ana").goes_to("#/s/watched")
    url = shared(ana, "Watch")
    eve = person(None).page
    eve.goto(url)
    expect(eve.locator(".banner")).to_contain_text("You are watching.")
    field(ana, "name").fill("Norway")
    expect(field(eve, "name")).to_have_value("Norway")
    expect(field(eve, "name")).to_have_attribute("readonly", "")
    expect(question(eve, "city").get_by_label("Oslo")).to_be_disabled()
    expect(eve.locator(".request-actions button:visible")).to_have_count(0)
    expect(eve.locator(".progress-words")).to_contain_text("not answer")
    expect(eve.get_by_role("button", name="Approve")).to_be_disabled()
    expect(eve.locator(".composer-box")).to_be_hidden()
    expect(eve.get_by_role("button", name="Share", exact=True)).to_be_hidden()
    expect(eve.locator(".session-row")).to_have_count(1)
    # The host would not have it either, whatever a page allows.
    said = eve.evaluate(
        """async () => {
          const { Host } = await import("/wire/host.js");
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
    assert said == "You may watch this session, but not change it."


def test_an_answerer_answers_on_a_phone_under_their_name(person: People, stage: Stage) -> None:
    uri = opening(stage, "shared")
    stage.tool(uri, "c1", toolInput="rm")
    ana = person("Ana").goes_to("#/s/shared")
    url = shared(ana, "Answer", "Ben")
    phone = person(None, **phone_options()).page
    phone.goto(url)
    expect(phone.locator(".request")).to_be_visible()
    assert "tkn" not in phone.url
    field(phone, "name").fill("Norway")
    expect(question(ana, "name")).to_contain_text("Ben is writing")
    question(phone, "name").get_by_role("button", name="Submit").tap()
    expect(question(ana, "name")).to_contain_text("Submitted by Ben")
    expect(phone.get_by_role("button", name="Approve")).to_be_disabled()
    expect(phone.locator(".tool-ask .why")).to_contain_text("the owner’s")
    phone.reload()
    expect(question(phone, "name")).to_contain_text("Submitted by you")
    phone.get_by_role("button", name="Review", exact=True).tap()
    phone.get_by_role("button", name="Accept", exact=True).tap()
    expect(ana.locator(".outcome-words")).to_contain_text("Ben answered")


def test_a_link_that_was_taken_back_says_so(
    person: People, stage: Stage, host: ServerProcess
) -> None:
    opening(stage, "revoked")
    ana = person("Ana").goes_to("#/s/revoked")
    url = shared(ana, "Answer")
    guest = person(None).page
    guest.goto(url)
    expect(guest.locator(".request")).to_be_visible()
    shares = f"{host.url}/v1/sessions/revoked/shares"
    for item in http("GET", shares)["items"]:
        http("DELETE", f"{shares}/{item['id']}")
    expect(guest.locator(".connection-bar")).to_contain_text(re.compile("revoked|token|credential"))


def test_the_code_is_drawn_from_the_hosts_strokes(person: People, stage: Stage) -> None:
    opening(stage, "drawn")
    ana = person("Ana").goes_to("#/s/drawn")
    ana.get_by_role("button", name="Share", exact=True).click()
    ana.get_by_role("button", name="Make a link").click()
    code = ana.get_by_role("img", name="The link as a QR code")
    expect(code).to_be_visible()
    assert code.locator("path").count() == 2
    # A module is a stroke of one unit; a link has hundreds of them.
    assert len(code.locator("path.qr-dark").get_attribute("d") or "") > 1_000
    expect(ana.locator(".share-warning")).to_contain_text("loopback")


def test_a_nameless_person_is_asked_for_a_name_when_others_are_here(
    person: People, stage: Stage
) -> None:
    opening(stage, "names")
    ana = person(None).goes_to("#/s/names")
    expect(ana.locator(".request")).to_be_visible()
    expect(ana.locator(".name-prompt")).to_be_hidden()
    ben = person("Ben").goes_to("#/s/names")
    ana.get_by_placeholder("Your name").fill("Ana")
    ana.get_by_role("button", name="Save").click()
    expect(ben.locator(".person")).to_have_count(2)
    expect(ben.locator(".people")).to_contain_text("Ana")
    field(ana, "name").fill("x")
    field(ana, "name").blur()
    expect(question(ben, "name")).to_contain_text("Draft by Ana")


def test_it_works_over_plain_http_in_a_lan(person: People) -> None:
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
        ana.get_by_role("button", name="Make a link").tap()
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


def test_without_a_token_the_page_says_what_it_needs(person: People) -> None:
    with serving("memory:", "--connection-token", "a-token-for-this-test") as server:
        ana = person("Ana", server.url).goes_to()
        expect(ana.locator(".connection-bar")).to_contain_text(re.compile("token"))


def test_trying_out_a_link_of_ones_own_does_not_take_its_owners_place(
    person: People, stage: Stage
) -> None:
    opening(stage, "tried")
    ana = person("Ana").goes_to("#/s/tried")
    url = shared(ana, "Watch")
    trial = ana.context.new_page()
    trial.goto(url)
    expect(trial.locator(".banner")).to_contain_text("You are watching.")
    again = ana.context.new_page()
    again.goto(f"{stage.url}/#/s/tried")
    expect(again.locator(".request-actions")).to_contain_text("Review")
