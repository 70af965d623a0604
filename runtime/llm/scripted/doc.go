// Package scripted is a model provider that answers from a YAML script. It is
// an HTTP server on the loopback interface that speaks three protocols, Anthropic
// Messages at /v1/messages and OpenAI's Chat Completions at /v1/chat/completions and
// Responses at /v1/responses, so that everything above it runs as with a real provider.
//
// # Scripts
//
// A script is a list of turns. The first turn that matches a request answers
// it. Matching looks at the request alone, so any number of conversations can
// go on at once; only "times" counts.
//
//	turns:
//	  - match:                      # all of these that are given must hold
//	      first: "text"             # contained in the first user message
//	      first_regex: "re"         # matches it
//	      last: "text"              # contained in the last message, tool results included;
//	                                # an image there is the text [image/png of 123 bytes]
//	      last_regex: "re"          # matches it
//	      turn: 1                   # this is the conversation's n-th answer
//	      system: "text"            # contained in the system prompt
//	      model: "id"               # is the model asked for
//	      tool: "name"              # is offered
//	    times: 2                    # only for the first n matching requests of this server
//	    reasoning: "text"
//	    text: "text"
//	    tool_calls:
//	      - name: some_tool
//	        input: {key: "value"}
//	      - name: other_tool
//	        input_json: '{"ids": {{ results "thread_id" | toJSON }}}'
//	    stop_reason: end            # end, tool_use, max_tokens, refusal, failed, other
//	    usage: {input_tokens: 10, output_tokens: 5, cache_read_tokens: 0, cache_write_tokens: 0}
//	    delay: 300ms                # for the whole answer, spread over its pieces
//	    cut_after: 3                # cut the connection after n events
//	    hang: true                  # send nothing; with cut_after, fall silent instead of cutting
//	  - match: {turn: 2}
//	    error: {status: 529, type: overloaded_error, code: "", message: "busy", retry_after: 2s}
//	  - text: "half an answer"
//	    error: {type: overloaded_error, message: "busy", after: 3}  # inside the answer, after n events
//	  - error: {status: 429, type: rate_limit_error, message: "slow", headers: {x-ratelimit-reset-tokens: 6m0s}}
//	  - raw:                        # an answer that keeps to no protocol
//	      status: 502               # 200 when left out
//	      headers: {content-type: text/html}
//	      body: "<html>"            # sent as it is
//	      cut_after: 3              # cut the connection after n bytes of the body
//	      hang: true                # fall silent after it instead
//
// Without usage, tokens are estimated as a quarter of the bytes. A request that
// no turn matches is answered with status 500.
//
// # Templates
//
// Text, reasoning and the strings of a tool's input are text/template without
// variables and templates of its own, with
//
//	if with range           and else; range over a list, or a map in the order of its keys
//	.Turn .Model            which answer this is; the model asked for
//	result n                the n-th tool result of the conversation, from 0 (-1 is the last),
//	                        as parsed JSON where it is JSON
//	results "key"           every value of that key in all tool results, at any depth, each once
//	first "re"              the first group of a match in the first user message
//	last "re"               the same in the last message
//	index value key         the element of a list, from 0, or of a map; (result 0).key is index too
//	len value               how many elements or bytes
//	printf "format" value…  as fmt.Sprintf
//	toJSON value            the value as JSON, which values that are not text appear as anyway
//
// input_json is rendered as a whole and sent as it is, valid or not.
package scripted
