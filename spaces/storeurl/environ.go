package storeurl

import "strings"

// Variable is the variable of the environment that names the store.
const Variable = "RYE_STORE"

// parameters are the variables of libpq with the parameter that each is the default of.
// Source: https://www.postgresql.org/docs/15/libpq-envars.html and, for what its Go client
// reads, parseEnvSettings of github.com/jackc/pgx/v5/pgconn.
var parameters = [][2]string{
	{"PGHOST", "host"}, {"PGPORT", "port"}, {"PGDATABASE", "dbname"}, {"PGUSER", "user"}, {"PGPASSWORD", "password"},
	{"PGCONNECT_TIMEOUT", "connect_timeout"}, {"PGSSLMODE", "sslmode"}, {"PGSSLKEY", "sslkey"}, {"PGSSLCERT", "sslcert"},
	{"PGSSLROOTCERT", "sslrootcert"}, {"PGSSLPASSWORD", "sslpassword"}, {"PGSSLSNI", "sslsni"}, {"PGSSLNEGOTIATION", "sslnegotiation"},
	{"PGTARGETSESSIONATTRS", "target_session_attrs"}, {"PGMINPROTOCOLVERSION", "min_protocol_version"},
	{"PGMAXPROTOCOLVERSION", "max_protocol_version"}, {"PGCHANNELBINDING", "channel_binding"}, {"PGREQUIREAUTH", "require_auth"},
}

// places are the variables about where more is found. They come before those of a service.
var places = [][2]string{{"PGPASSFILE", "passfile"}, {"PGSERVICE", "service"}, {"PGSERVICEFILE", "servicefile"}}

// Complete is the address with what variables of libpq say beside it. The process of a
// thread is handed the result: it has none of these variables. The service, which is read
// from its file, counts for more than a variable, and less than the address. The error is
// an [*Error].
func (u URL) Complete(getenv func(string) string) (URL, error) {
	if u.parsed == nil {
		return u, nil
	}
	with := *u.parsed
	query := with.Query()
	add := func(of [][2]string) {
		for _, p := range of {
			if value := getenv(p[0]); value != "" && !u.says(p[1]) && !query.Has(p[1]) {
				query.Set(p[1], value)
			}
		}
	}
	add(places)
	if !query.Has("service") {
		add(parameters)
	}
	with.RawQuery = query.Encode()
	if why := check(&with); why != "" {
		return URL{}, &Error{Reason: strings.TrimSpace("with the PG… variables of the environment " + why)}
	}
	return URL{parsed: &with}, nil
}

// says reports whether the address itself decides a parameter.
func (u URL) says(parameter string) bool {
	_, password := u.parsed.User.Password()
	switch parameter {
	case "host":
		return u.parsed.Host != ""
	case "port":
		return u.parsed.Host != "" // of that host
	case "dbname":
		return strings.Trim(u.parsed.Path, "/") != "" || u.parsed.Query().Has("database")
	case "user":
		return u.parsed.User.Username() != ""
	case "password":
		return password
	}
	return false
}
