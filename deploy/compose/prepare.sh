#!/bin/sh
# Makes what compose.yaml needs, beside it: an authority of its own with certificates (secrets/), a password for each user of
# the bus, a token for who submits, folders for the state, and .env. What is there is kept: remove secrets/ to begin anew.
set -eu
cd "$(dirname "$0")"
umask 077
command -v openssl > /dev/null || { echo "error: openssl is not there" >&2; exit 1; }

uid=$(id -u) gid=$(id -g)
# The processes are not root's, even if this is.
[ "$uid" != 0 ] || { uid=10001 gid=10001; }

random() { printf 'p%s' "$(openssl rand -hex 24)"; }

# Certificate for NAME in FOLDER, for the host names in SANS.
certificate() {
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$2" \
    -keyout "$1/$2.key" -out "$1/$2.csr" 2> /dev/null
  printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\n' "$3" > "$1/$2.ext"
  openssl x509 -req -in "$1/$2.csr" -CA secrets/authority/ca.pem -CAkey secrets/authority/ca.key -CAcreateserial \
    -days 825 -extfile "$1/$2.ext" -out "$1/$2.pem" 2> /dev/null
  rm "$1/$2.csr" "$1/$2.ext"
  cp secrets/authority/ca.pem "$1/ca.pem"
}

if [ ! -e secrets/complete ]; then
  rm -rf secrets
  mkdir -p secrets/authority secrets/nats secrets/bus secrets/submit secrets/engine
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=proofmill compose" \
    -addext "keyUsage=critical,keyCertSign,cRLSign" -keyout secrets/authority/ca.key -out secrets/authority/ca.pem 2> /dev/null
  certificate secrets/nats server DNS:nats,DNS:localhost,IP:127.0.0.1
  certificate secrets/bus client DNS:client
  certificate secrets/submit server DNS:source,DNS:localhost,IP:127.0.0.1
  certificate secrets/engine server DNS:engine,DNS:localhost,IP:127.0.0.1
  for user in coordinator prover verifier collector sequencer source operator console; do
    password=$(random)
    echo "PROOFMILL_$(echo "$user" | tr '[:lower:]' '[:upper:]')_PASSWORD=$password" >> secrets/nats.env
    echo "PROOFMILL_BUS_PASSWORD=$password" > "secrets/$user.env"
  done
  echo "submitter $(random)" > secrets/submit/tokens
  echo "prover $(random)" > secrets/engine/tokens
  touch secrets/complete
fi

mkdir -p circuits
for service in nats coordinator standby sequencer source engine prometheus; do mkdir -p "state/$service"; done
printf 'PROOFMILL_UID=%s\nPROOFMILL_GID=%s\nPROOFMILL_USER=%s:%s\n' "$uid" "$gid" "$uid" "$gid" > .env
if [ "$(id -u)" = 0 ]; then
  chown -R "$uid:$gid" secrets/nats secrets/bus secrets/submit secrets/engine state circuits
fi
chmod -R go+rX workflow
echo "ready: docker compose up --detach"
