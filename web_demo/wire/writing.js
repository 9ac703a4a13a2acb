/**
 * Where somebody writes here: it fades when nothing more is typed, and then they have paused.
 */

/** @import {EditingPlace} from "./types.d.ts" */
import { Events } from "./events.js";

/** How long after the last key somebody still writes. */
const FADING = 4_000;

/** @extends {Events<{ change: EditingPlace | undefined, paused: EditingPlace }>} */
export class Writing extends Events {
  /** @type {EditingPlace | undefined} */ #place;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;

  /** @param {EditingPlace} place */
  isAt({ requestId, questionId }) {
    return this.#place?.requestId === requestId && this.#place.questionId === questionId;
  }

  /** @param {EditingPlace | undefined} place - nowhere, if nobody writes any more */
  goTo(place) {
    clearTimeout(this.#timer);
    const left = this.#place;
    this.#place = place;
    this.emit("change", place);
    if (place) this.#timer = setTimeout(() => this.goTo(undefined), FADING);
    if (left && !this.isAt(left)) this.emit("paused", left);
  }

  /** Without a word. */
  stop() {
    clearTimeout(this.#timer);
  }
}
