// Package hook decides which hooks an event fires, in which order, and what
// comes of it.
//
// # Layers
//
// Hooks run layer by layer, and within a layer in the order they are defined:
//
//	0 user            config/agent/hooks.yaml of the user space
//	1 directive       <hooks> of the directives of an extends chain, root first
//	2 builtin         config/agent/hook_conditions.yaml of the system space
//	3 project         config/agent/hooks.yaml of the project space
//	4 infrastructure  infra_hooks of the system's hook_conditions.yaml
//
// Two hooks with the same id in one file are an error; in different files both
// run. A directive can suppress a hook by its id, and what a hook of a context
// event would inject by the id of the item; layer 4 cannot be suppressed.
//
// # What a hook may do
//
// The hooks of settings act in every thread, and a project's may be somebody else's
// work. So the files of layers 0 and 3 pass the trust gate like items, and hooks of
// directives are covered by the directive's signature. And whoever wrote a hook, its
// actions of layers 0, 1 and 3 are calls of the thread that need its capabilities,
// and every item they load or execute passes the gate too. Only layers 2 and 4, which are part of
// the program, are exempt from capabilities ([Hook.Exempt]) and may use the tools
// below [InternalPrefix]. At a context event knowledge needs no capability, as the
// <context> of a directive needs none. And one internal tool is for all layers:
// [ControlID], by which a hook decides. It touches nothing but the flow of its own
// thread, and package hook carries it out itself.
//
// # Events
//
// An [Event] has a kind, which says what becomes of the hooks that match.
// resolve_extends: the first one names what the directive extends. Context
// events: all run and their texts are collected. Control events: they run until
// one decides, those of layer 4 in any case, of which a decision counts when
// there is none yet. Notify events: all run.
//
// A hook without an event, which only the short form <when> of a directive can
// be, hears every event at which its condition can hold: control events only when
// it decides, and resolve_extends only, and no other, when it names what is
// extended.
//
// The data of an event also hold "event": the same data, and its name. So
// event.name == "error" and ${event.tokens_used} mean what they seem to.
//
// # Failure
//
// An action that fails ends its hook; the failure is recorded, and the next hook
// runs. An item that the trust gate refuses, or [ErrIntegrity], ends the event
// and is for the thread to die of. A hook has its own timeout. A thread that a
// hook started does not fire hooks of the same id again: [Engine.Firing] carries
// the ids down.
package hook
