// Package browser tests the page in a real browser: Chromium, driven by go-rod, opens the
// page of a real server with real threads, whose model is scripted.
//
// A test makes a [place] (project, user space, model), starts a server in it, and opens a
// tab of its own. A tab finds what a person would: by role and name, in what is visible.
// A test fails at its end for all that it does not expect: errors on the console, exceptions,
// violations of the content security policy, and requests to anywhere else.
//
// Where no Chromium is, the tests are skipped and say so. RYE_CHROMIUM names one that has
// another name; RYE_AXE the file axe.min.js, which .ci/run takes from npm.
package browser
