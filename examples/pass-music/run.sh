#!/usr/bin/env bash
# A music service: songs in pieces, a session check with each, over several epochs.
. "$(dirname "$0")/../pass-setup.sh"
deployment
mkdir music
for piece in 1 2 3 4 5 6 7 8; do head -c 20000 /dev/urandom > music/song-$piece.mp3; done
python3 -m http.server $SERVICE --bind 127.0.0.1 --directory music > service.log 2>&1 &
gateway
subscriber
cp ada.pass eve.pass # a friend gets a copy
client
for piece in 1 2 3 4 5 6 7 8; do
    get /song-$piece.mp3 > piece
    cmp -s piece music/song-$piece.mp3
    echo "piece $piece: $(wc -c < piece) bytes"
    sleep "${PAUSE:-4}"
done
# A friend with a copy of the pass hears nothing while it plays.
alpheus pass client run --pass eve.pass --key-file ada.key --local 127.0.0.1:0 --log info > /dev/null 2> eve.log &
until grep -q 'in use' eve.log 2> /dev/null; do sleep 0.1; done
echo "a copy of the pass: in use"
