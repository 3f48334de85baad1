// The page begins here.

import { render } from "preact";
import { signInByLink } from "./api/session";
import { startKeys } from "./shell/keys";
import { startRouter } from "./shell/router";
import { Studio } from "./shell/studio";
import { startTheme } from "./shell/theme";
import "./css/colors.css";
import "./css/page.css";
import "./css/parts.css";
import "./css/views.css";
import "./css/charts.css";
import "./css/manners.css";
import "./css/print.css";

startTheme();
startRouter();
startKeys();
void signInByLink().then(() => render(<Studio />, document.getElementById("app")!));
