// The views of one thread, in the order in which they are offered. make(ctx) gives {el, close(), focus?()}.

import {filesView} from "./artifacts.js";
import {compareView} from "./compare.js";
import {flameView} from "./flame.js";
import {verifyView} from "./receipt.js";
import {spendView} from "./spend.js";
import {timelineView} from "./timeline.js";
import {transcriptView} from "./transcript.js";

export const tabs = [
  {id: "transcript", title: "Transcript", make: transcriptView},
  {id: "timeline", title: "Timeline", make: timelineView},
  {id: "flame", title: "Flame", make: flameView},
  {id: "spend", title: "Spend", make: spendView},
  {id: "files", title: "Files", make: filesView},
  {id: "compare", title: "Compare", make: compareView},
  {id: "verify", title: "Verify", make: verifyView},
];
