// Tabs that are opened less often, in a file of their own: see `parts/lazy.tsx`.

export { AdviceTab } from "./advice/advice_tab";
export { Events } from "./events";
export { Explained } from "./explained";
export { Outputs } from "./outputs";
export { Parameters } from "./parameters";
export { ProfileTab } from "./profile/profile_tab";
export { Resources } from "./resources/resources";
