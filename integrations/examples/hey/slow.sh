#!/bin/sh
# A load tester behind a link: airloom emulate wpt/3g --seed 7 -- sh slow.sh
: "${AIRLOOM_LINK:?no link here: airloom emulate wpt/3g -- sh slow.sh}"
echo "over $AIRLOOM_LINK, seed $AIRLOOM_SEED"
# The simulated server at the far end; one of your own: --loopback PORT, and host.airloom:PORT here.
# A line of CSV for each answer: its seconds first, its status seventh. A round trip is 300 ms.
hey -n 3 -c 1 -t 20 -o csv http://10.77.0.1/20kB | awk -F, '
    NR > 1 && $7 == 200 { whole++ }
    NR > 1 && ($1 < 0.3 || $1 > 5) { print "it took " $1 " s"; bad = 1 }
    END { print whole + 0 " of 3 answers"; exit bad || whole != 3 }'
