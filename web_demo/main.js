// Starts the page.

import { Host } from "./client/host.js";
import { Attention } from "./views/attention.js";
import { enableAutoGrow } from "./views/dom.js";
import { applyTheme } from "./views/settings.js";
import { Shell } from "./views/shell.js";
import { mountMessages } from "./views/toasts.js";

applyTheme();
const host = new Host();
const shell = new Shell(host, new Attention(host));
document.body.append(shell.element);
mountMessages();
enableAutoGrow();
host.start();
