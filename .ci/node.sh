# Sourced by the checks that need Node. Everything is installed below the
# folder that is named; nothing on the machine changes but for npm itself, where
# it is missing.

require_npm() {
  command -v npm >/dev/null && return
  echo "node and npm are missing; trying to install them" >&2
  apt-get install -y nodejs npm || {
    echo "install Node (https://nodejs.org) to run the checks with real MCP programs" >&2
    exit 1
  }
}

npm_install() { # npm_install FOLDER PACKAGE...
  local folder=$1
  shift
  mkdir -p "$folder"
  npm install --prefix "$folder" --no-audit --no-fund --loglevel=error "$@" || {
    echo "npm cannot install $*" >&2
    exit 1
  }
}

# require_node FOLDER puts a Node of at least 22.19 first on the PATH, taken from
# npm where the machine's is older.
require_node() {
  require_npm
  node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || a === 22 && b >= 19 ? 0 : 1)' && return
  [ -x "$1/node_modules/.bin/node" ] || npm_install "$1" node@22
  export PATH=$1/node_modules/.bin:$PATH
}
