module github.com/santhosh-tekuri/jsonschema/v6

go 1.26.0

require github.com/santhosh-tekuri/jsonschema/v5 v5.3.1
