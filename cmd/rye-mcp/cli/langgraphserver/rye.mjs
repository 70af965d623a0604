// The graph that threads of rye-mcp belong to: states are written as its node, and a run
// of it adds nothing.
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("rye", () => ({}))
  .addEdge(START, "rye")
  .addEdge("rye", END)
  .compile();
