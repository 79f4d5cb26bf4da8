# Yardstick scenarios for ns-2 (2.35). See README.md.
#   ns ns2_anchor.tcl SCEN [seed] [iw] [agent]      SCEN: a b c d e
# agent for a, b, c: sack (one-way Sack1 + delayed-ack sink, default), newreno, fullsack, fullnewreno
# e: SCTP bulk with the parameters of b (agent sctp1 = one stream, sctp5 = five streams)
# A one-way ns-2 agent counts whole segments: 1460 B payload + 40 B header, no handshake, no FIN.
set scen  [lindex $argv 0]
set seed  [expr {[llength $argv] > 1 ? [lindex $argv 1] : 1}]
set iw    [expr {[llength $argv] > 2 ? [lindex $argv 2] : 10}]
set agent [expr {[llength $argv] > 3 ? [lindex $argv 3] : "sack"}]

remove-all-packet-headers
add-packet-header IP TCP Flags SCTP
set ns [new Simulator]
ns-random [expr 1000 + $seed]
set rng [new RNG]; for {set i 1} {$i < $seed} {incr i} { $rng next-substream }
set rngU [new RNG]; for {set i 1} {$i < $seed} {incr i} { $rngU next-substream }

Agent/TCP set packetSize_ 1460
Agent/TCP set tcpip_base_hdr_size_ 40
Agent/TCP set windowInit_ $iw
Agent/TCP set overhead_ 0
Agent/TCP set minrto_ 1.0
Agent/TCP set maxrto_ 60
Agent/TCP set tcpTick_ 0.001
Agent/TCP set useHeaders_ true
Agent/TCP/FullTcp set segsize_ 1460
Agent/TCP/FullTcp set segsperack_ 2
Agent/TCP/FullTcp set interval_ 0.2
Agent/TCPSink/Sack1/DelAck set interval_ 200ms
Agent/TCPSink/DelAck set interval_ 200ms

proc mkpair {a b win} {
    global ns agent
    switch $agent {
        sack        { set t [new Agent/TCP/Sack1];  set s [new Agent/TCPSink/Sack1/DelAck] }
        newreno     { set t [new Agent/TCP/Newreno]; set s [new Agent/TCPSink/DelAck] }
        fullsack    { set t [new Agent/TCP/FullTcp/Sack]; set s [new Agent/TCP/FullTcp/Sack] }
        fullnewreno { set t [new Agent/TCP/FullTcp/Newreno]; set s [new Agent/TCP/FullTcp/Newreno] }
    }
    $ns attach-agent $a $t; $ns attach-agent $b $s; $ns connect $t $s
    if {[string match full* $agent]} { $s listen; $s set window_ $win }
    $t set window_ $win
    return $t
}
set ndone 0; set times {}
proc finished {t} {
    global ns ndone times start tot scen
    lappend times [expr [$ns now] - $start($t)]
    incr ndone
    if {$ndone == $tot} { finish }
}
# one-way agents call "done" on the sender when everything is acknowledged
Agent/TCP instproc done {} { finished $self }
Agent/TCP instproc done_data {} { finished $self }

proc finish {} {
    global ns times scen seed iw agent tlist drops
    set ts [lsort -real $times]; set n [llength $ts]
    set sum 0.0; foreach x $ts { set sum [expr $sum + $x] }
    set rx 0; set dp 0; set to 0; set cc 0
    foreach t $tlist { catch {
        incr rx [$t set nrexmitpack_]; incr dp [$t set ndatapack_]; incr to [$t set nrexmit_]; incr cc [$t set ncwndcuts_] } }
    puts "scen=$scen seed=$seed iw=$iw agent=$agent n=$n t_min=[lindex $ts 0] t_med=[lindex $ts [expr $n/2]] t_mean=[expr $sum/$n] t_max=[lindex $ts end] end=[$ns now] data_pkts=$dp rexmit_pkts=$rx rto=$to cwnd_cuts=$cc"
    exit 0
}
proc startBulk {t segs} {
    global ns start agent
    set start($t) [$ns now]
    if {[string match full* $agent]} { $t advance-bytes [expr $segs*1460] } else { $t advanceby $segs }
}
set tlist {}
switch $scen {
  a - b {
    set n0 [$ns node]; set n1 [$ns node]
    if {$scen == "a"} {
        $ns duplex-link $n0 $n1 100Mb 10ms DropTail; set segs 68494; set win 274
    } else {
        $ns simplex-link $n0 $n1 384kb 150ms DropTail; $ns simplex-link $n1 $n0 64kb 150ms DropTail
        set segs 3425; set win 44
        set em [new ErrorModel]; $em unit pkt; $em set rate_ 0.01
        set rv [new RandomVariable/Uniform]; $rv use-rng $rng; $em ranvar $rv; $em drop-target [new Agent/Null]
        $ns link-lossmodel $em $n0 $n1
    }
    $ns queue-limit $n0 $n1 2000; $ns queue-limit $n1 $n0 2000
    set tot 1
    set t [mkpair $n0 $n1 $win]; lappend tlist $t
    $ns at 0.0 "startBulk $t $segs"
  }
  c {
    set N 100; set tot $N
    set r0 [$ns node]; set r1 [$ns node]
    $ns duplex-link $r0 $r1 100Mb 23ms DropTail
    $ns queue-limit $r0 $r1 417
    set u [new RandomVariable/Uniform]; $u use-rng $rngU; $u set min_ 0; $u set max_ 0.1
    for {set i 0} {$i < $N} {incr i} {
        set a [$ns node]; set b [$ns node]
        $ns duplex-link $a $r0 1Gb 1ms DropTail; $ns duplex-link $b $r1 1Gb 1ms DropTail
        $ns queue-limit $a $r0 2000; $ns queue-limit $r1 $b 2000
        set t [mkpair $a $b 684]; lappend tlist $t
        $ns at [$u value] "startBulk $t 685"
    }
  }
  d {
    # one-way agents, 8 segments per object (10240 B = 7.01 segments), a new agent state per object (reset), no request
    set E 25; set C 40; set tot [expr $E*$C]
    set srv [$ns node]; set core [$ns node]
    $ns duplex-link $srv $core 1Gb 1ms DropTail; $ns queue-limit $srv $core 2000
    set u [new RandomVariable/Uniform]; $u use-rng $rngU; $u set min_ 0; $u set max_ 10
    Agent/TCP instproc done {} { nextObj $self }
    proc nextObj {t} {
        global ns left
        incr left($t) -1
        if {$left($t) == 0} { finished $t } else { $t reset; $t advanceby 8 }
    }
    for {set e 0} {$e < $E} {incr e} {
        set ed [$ns node]; $ns duplex-link $core $ed 1Gb 1ms DropTail; $ns queue-limit $core $ed 2000
        for {set k 0} {$k < $C} {incr k} {
            set c [$ns node]; $ns duplex-link $ed $c 10Mb 18ms DropTail; $ns queue-limit $ed $c 2000
            set t [mkpair $srv $c 684]; lappend tlist $t; set left($t) 20
            $ns at [$u value] "startBulk $t 8"
        }
    }
  }
  e {
    set n0 [$ns node]; set n1 [$ns node]
    $ns simplex-link $n0 $n1 384kb 150ms DropTail; $ns simplex-link $n1 $n0 64kb 150ms DropTail
    $ns queue-limit $n0 $n1 2000; $ns queue-limit $n1 $n0 2000
    set em [new ErrorModel]; $em unit pkt; $em set rate_ 0.01
    set rv [new RandomVariable/Uniform]; $rv use-rng $rng; $em ranvar $rv; $em drop-target [new Agent/Null]
    $ns link-lossmodel $em $n0 $n1
    set s [new Agent/SCTP]; set r [new Agent/SCTP]
    foreach x [list $s $r] {
        $x set mtu_ 1500; $x set dataChunkSize_ 1448; $x set initialRwnd_ 65535
        $x set numOutStreams_ [expr {$agent == "sctp5" ? 5 : 1}]; $x set oneHeartbeatTimer_ 0; $x set heartbeatInterval_ 0
        $x set initialSsthresh_ 65535
    }
    $ns attach-agent $n0 $s; $ns attach-agent $n1 $r; $ns connect $s $r
    set want [expr int(ceil(5000000/1432.0))]
    set app [new Application/FTP]; $app attach-agent $s
    set tot 1
    # completion: the receiver's bytes are polled at the link (ns-2 SCTP has no done hook)
    set tf [open /dev/null w]
    $ns at 0.0 "$app send 5000000"
    set qm [$ns monitor-queue $n0 $n1 $tf 1.0]
    set lastb 0; set idle 0
    proc poll {} {
        global ns qm lastb idle times tlist lastt
        set b [$qm set bdepartures_]
        if {$b != $lastb} { set lastb $b; set lastt [$ns now]; set idle 0 } else { incr idle }
        if {$idle > 7000} { puts "bytes_on_link=$b pkts_on_link=[$qm set pdepartures_]"; set times [list [expr $lastt + 0.15]]; finish }
        $ns at [expr [$ns now] + 0.01] poll
    }
    $ns at 0.01 poll
  }
}
$ns at 4000.0 finish
$ns run
