// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package clients names the programs that the tests build besides our own, so that go.mod keeps their versions.
package clients

import _ "github.com/summerwind/h2spec/cmd/h2spec"
