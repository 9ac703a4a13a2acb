// The page begins here.

import { mountAnnouncer } from "./views/announcer.js";
import { Attention } from "./views/attention.js";
import { growAsTyped } from "./views/growing.js";
import { applyTheme } from "./views/settings.js";
import { Shell } from "./views/shell.js";
import { mountToasts } from "./views/toast.js";
import { Host } from "./wire/host.js";

applyTheme();
const host = new Host();
const shell = new Shell(host, new Attention(host));
document.body.append(shell.element);
mountAnnouncer();
mountToasts();
growAsTyped();
host.start();
