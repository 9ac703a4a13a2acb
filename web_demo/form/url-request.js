// A request to visit an address: shown in full with its host emphasized, opened only by a click.

/** @import { InputRequest } from "../client/types.d.ts" */
import { webAddress } from "../text/addresses.js";
import { attribute, h, icon } from "../views/dom.js";
import { ICONS } from "../views/icons.js";

export class UrlRequest {
  /**
   * @param {InputRequest} request
   * @param {boolean} isAlone then the form's own button confirms it
   * @param {() => void} changed
   */
  constructor(request, isAlone, changed) {
    const url = webAddress(request.url ?? "");
    this.isPlain = url === undefined;
    this.wasOpened = false;
    this.done = h("input", { type: "checkbox", onchange: changed });
    this.open = h(
      "a",
      {
        class: "button primary",
        href: url?.href,
        target: "_blank",
        rel: "noopener noreferrer",
        onclick: () => this.#opened(),
      },
      icon(ICONS.external),
      `Open ${url?.host}`,
    );
    this.element = h(
      "div",
      { class: "url-request stack" },
      h(
        "p",
        { class: "hint" },
        "It asks you to visit a page. It opens in a new tab, only when you click.",
      ),
      h("p", { class: "url-whole", dir: "ltr" }, ...addressParts(request.url ?? "", url)),
      url?.protocol === "http:" &&
        h("p", { class: "url-warning" }, "This address is not encrypted (http)."),
      this.isPlain
        ? h("p", { class: "problem" }, "This is not a web address, so it cannot be opened from here.")
        : h("div", { class: "url-actions" }, this.open),
      !isAlone &&
        h(
          "label",
          { class: "choice url-done" },
          this.done,
          h("span", { class: "choice-label" }, "I’m done there"),
        ),
    );
    this.isAlone = isAlone;
    this.changed = changed;
  }

  #opened() {
    this.wasOpened = true;
    attribute(this.element, "data-opened", true);
    this.changed();
  }

  get isDone() {
    return this.isAlone || this.done.checked;
  }

  /** @param {boolean} isEnabled */
  enable(isEnabled) {
    this.done.disabled = !isEnabled;
  }

  focus() {
    (this.isPlain ? this.done : this.open).focus();
  }
}

/** @param {string} text @param {URL | undefined} url @returns {(Node | string)[]} */
function addressParts(text, url) {
  const begin = text.indexOf("//") + 2;
  const authority = text.slice(begin).split(/[/?#]/, 1)[0] ?? "";
  const at = begin + authority.lastIndexOf("@") + 1;
  if (!url || text.slice(at, at + url.host.length).toLowerCase() !== url.host) return [text];
  // The host as the browser will use it: look-alike letters show as xn--.
  return [
    text.slice(0, at),
    h("strong", { class: "url-host" }, url.host),
    text.slice(at + url.host.length),
  ];
}
