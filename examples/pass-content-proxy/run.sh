#!/usr/bin/env bash
# A content proxy: subscribers read other sites through it, and it does not know who reads.
. "$(dirname "$0")/../pass-setup.sh"
SITE=${SITE:-8001}
deployment
mkdir site
echo '<h1>The news</h1>' > site/index.html
python3 -m http.server $SITE --bind 127.0.0.1 --directory site > site.log 2>&1 &
python3 "$HERE/service.py" $SERVICE http://127.0.0.1:$SITE > service.log 2>&1 &
gateway
subscriber
client
get "/?url=http://127.0.0.1:$SITE/"
# Without a pass, and for other sites, there is nothing.
curl -sk -o refused -w 'without a pass: %{http_code}\n' "https://localhost:$GATEWAY/?url=http://127.0.0.1:$SITE/"
curl -s -o refused -w 'another site: %{http_code}\n' -H "Alpheus-Local: $(cat ada.local)" \
    "http://127.0.0.1:$LOCAL/?url=http://127.0.0.1:1/"
