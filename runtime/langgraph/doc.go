// Package langgraph is a client of the threads of a LangGraph server: the HTTP API of
// LangGraph Platform, of its self-hosted deployments and of the development server of
// @langchain/langgraph-cli, with which it was tried.
//
// Nothing that a server answers is trusted. Answers are bounded in bytes and time, no
// redirect is followed, and an answer about another thread than the one that was asked
// for is an error.
package langgraph
