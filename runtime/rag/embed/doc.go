// Package embed turns texts into vectors at an endpoint of OpenAI's protocol
// (POST base_url/embeddings): the one that memory.yaml names, or Ollama on this machine.
//
// The answer of an endpoint is not trusted: sizes, counts, order, numbers and dimension
// are checked, and an answer that is not whole gives no vector. The cost of a call is
// taken out of the money of the thread that asks before the request leaves, and
// settled when it has come back.
package embed
