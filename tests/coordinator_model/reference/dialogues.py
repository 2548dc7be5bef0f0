"""Scripted conversations with the coordinator of a consumer group.

Each is held with the reference in the test suite, and with running brokers by ``make dialogues``: the broker is right.
"""

from __future__ import annotations

DIALOGUES: dict[str, str] = {
    "full response": """
        m1 0 => e2:6
        m1 2 => e2
        m1 2 full tp=told => e2:6
        m1 2 full tp= => e2:6       # full also when it says that it holds nothing
        m1 2 tp=told => e2
    """,
    "reconciliation": """
        m1 0 => e2:6
        wait 1100
        m2 0 => e3:0
        m1 2 => e2:3
        m1 2 => e2
        m1 2 tp=before => e2
        m2 3 => e3
        m1 2 tp=told => e3          # higher, and nothing gained
        m2 3 => e3:3
        m2 3 tp=told => e3
        wait 1100
        m3 0 => e4:0
        m1 3 => e3:2
        m2 3 => e3:2
        m3 4 => e4
        m1 3 tp=told => e4
        m3 4 => e4:1
        m2 3 => e3
        m2 3 tp=told => e4
        m3 4 => e4:2
    """,
    "a further target takes more": """
        m1 0 => e2:6
        wait 1100
        m2 0 => e3:0
        m1 2 => e2:3
        wait 1100
        m3 0 => e4:0
        m1 2 tp=told => e2:2; <4.2: =e2:2    # stays at its epoch, or one above it before 4.2
        m1 2 tp=told => e4; <4.2: =e3
    """,
    "the rebalance timeout last sent counts": """
        m1 0 rt=60000 => e2:6
        wait 1100
        m2 0 => e3:0
        m1 2 rt=3000 names=t => e2:3
        wait 2000
        m1 2 tp=told => e3
        wait 2000
        m1 3 => e3
    """,
    "a revocation that never comes": """
        m1 0 rt=3000 => e2:6
        wait 1100
        m2 0 => e3:0
        m1 2 => e2:3
        wait 1500
        m1 2 => e2
        m2 3 => e3
        wait 2000
        m1 2 => 25
        m2 3 => e4:6
        wait 1100
        m1 0 => e5:0
    """,
    "what is to be given up is still held": """
        m1 0 => e2:6
        wait 1100
        m2 0 => e3:0
        m1 2 => e2:3
        m1 2 tp=before => e2
        m1 2 full tp=before => e2:3
        m1 2 tp=told => e3
    """,
    "a smaller subscription while something is to be given up": """
        m1 0 names=t,u => e2:12
        wait 1100
        m2 0 names=t => e3:0
        m1 2 => e2:6
        wait 1100
        m1 2 names=t => e2:0; <4.2: =e1
        m1 2 tp=told => e4:3; <4.2: =e2:0
    """,
    "released in one frame": """
        m1 0 => e2:6
        wait 1100
        m2 0 => e3:0
        m1 2 tp=3 => e3:3; <4.3: =e2:3
    """,
    "taken and given back": """
        m1 0 => e2:6
        wait 1100
        m2 0 => e3:0
        m1 2 => e2:3
        m2 -1 => e-1
        m1 2 => e2
        wait 1100
        m1 2 tp=told => e4:6
    """,
    "a topic is dropped": """
        m1 0 names=t,u => e2:12
        wait 1100
        m1 2 names=t => e2:6
        m1 2 tp=told => e3
    """,
    "the assignment interval": """
        m1 0 => e2:6
        m2 0 => e2:0; <4.3: =e2:0
        wait 1100
        m2 2 exact => e3; <4.3: =e2
        m1 2 => e2:3
    """,
    "epochs of a member": """
        m1 0 => e2:6
        wait 1100
        m1 2 names=t,u => e3:12
        m1 9 => 110
        m1 2 => 110
        m1 2 tp=told => e3
        m1 2 tp=alien => 110
        m1 1 exact tp= => 110; <4.3: =e2
        m1 3 => e3
    """,
    "epochs of a static member": """
        m1 0 i=i1 => e2:6
        wait 1100
        m1 2 i=i1 names=t,u => e3:12
        m1 9 i=i1 => 110
        m1 2 i=i1 => 110
        m1 2 i=i1 tp=told => e3
        m1 3 => e3
        m1 3 i=i2 => 25
        m2 3 i=i1 => 82
    """,
    "the epoch before the last write": """
        m1 0 => e2:6
        wait 1100
        m1 2 names=t,u => e3:12
        wait 1100
        m2 0 names=t,u => e4:0
        m1 3 => e3:6
        m1 2 tp=2 => 110
        m1 3 tp=told => e4
    """,
    "joins again while it is stable": """
        m1 0 => e2:6
        m1 0 => e2:6
        wait 1100
        m2 0 => e3:0
        m1 2 tp=3 => e3:3; <4.3: =e2:3
        m1 0 => e3:3; <4.2: =110
    """,
    "joins again while something is to be given up": """
        m1 0 => e2:6
        wait 1100
        m2 0 => e3:0
        m1 2 => e2:3
        m1 0 => e3:3; <4.2: =110
        m2 3 => e3:3; <4.2: =e2
    """,
    "joins again while others hold what it is to have": """
        m1 0 => e2:6
        wait 1100
        m2 0 => e3:0
        m2 0 => e3:0
        m1 2 => e2:3
        m1 2 tp=told => e3
        m2 0 => e3:3; <4.2: =110
    """,
    "malformed": """
        m1 0 rt=-1 => 42
        m1 0 tp=none => 42
        m1 0 tp=alien => 42
        m1 0 nothing => 42
        m1 0 i= => 42
        m1 0 rack= => 42
        m1 0 id= => 42
        m1 5 id= => 42
        m1 -1 id= => 42
        m1 -2 => 42
        m1 -3 => 42
        m1 -3 i=i1 => 42
        m1 0 assignor=none => 112
        m1 0 assignor=range => e2:6
        m2 0 regex=^t.*( => 128
    """,
    "a subscription to nothing": """
        m1 0 names= => =e1:0
        m2 0 regex= => =e1:0
    """,
    "malformed, version 0": """
        m1 5 id= v=0 => 42
        m1 -1 id= v=0 => 42
        m1 0 rt=-1 v=0 => 42
        m1 0 id= v=0 => e2:6
    """,
    "the session": """
        m1 0 => e2:6
        wait 4000
        m1 2 => e2
        wait 4000
        m1 9 => 110
        wait 3000
        m1 2 => 25
        m1 0 => e4:6
    """,
    "a static member that does not come back": """
        m1 0 i=i1 => e2:6
        wait 1100
        m2 0 => e3:0
        m1 2 i=i1 => e2:3
        m1 2 i=i1 tp=told => e3
        m2 3 => e3:3
        m1 -2 i=i1 => e-2
        wait 3000
        m2 3 => e3
        wait 4000
        m2 3 => e4:6
        m1 3 i=i1 => 25
    """,
    "a static member is away for a while": """
        m1 0 i=i1 => e2:6
        m1 -2 i=i1 => e-2
        m1 2 i=i1 => 110
        m1 -2 i=i1 => e-2
        m2 0 i=i1 => e2:6
        m1 2 i=i1 => 82
        m1 -1 i=i1 => 82
        m2 -1 i=i1 => e-1
    """,
    "a static member comes back with another subscription": """
        m1 0 i=i1 => e2:6
        m1 -2 i=i1 => e-2
        wait 1100
        m2 0 i=i1 names=t,u => e3:12
    """,
    "an instance id in use": """
        m1 0 i=i1 => e2:6
        m2 0 i=i1 => 111
        m1 0 i=i1 => 111
        m1 2 i=i1 => e2
        wait 6500
        m2 0 i=i1 => e4:6
    """,
    "fenced": """
        m1 0 i=i1 => e2:6
        m2 2 i=i1 => 82
        m2 -1 i=i1 => 82
        m2 -2 i=i1 => 82
        m2 -2 i=other => 25
    """,
    "a member leaves": """
        m1 0 => e2:6
        m1 -1 => e-1
        m1 2 => 25
        m1 -1 => 25
        wait 1100
        m2 0 => e4:6
        m3 5 => 25
    """,
    "a member that leaves is not asked for its epoch": """
        m1 0 => e2:6
        wait 1100
        m2 0 => e3:0
        m1 2 => e2:3
        m1 -1 tp=before => e-1
        wait 1100
        m2 3 => e4:6
    """,
    "the group is full": """
        m1 0 => e2:6
        m2 0 i=i2
        m3 0
        m4 0
        wait 1100
        m4 3 exact
        m5 0 => 81
        m5 7 => 81
        m5 -1 => 25
        m1 9 => 110
        m2 -2 i=i2 => e-2
        m6 0 i=i2 => e5:0; <4.4: 81
    """,
    "ids": """
        m1 0 id= => 42
        m1 0 id=mine => e2:6
    """,
    "a static leave without its instance id": """
        m1 0 i=i1 => e2:6
        m1 -2 => 42
        m2 0 i=i1 => 111
    """,
    "nothing is known of the group": """
        m1 5 => 69
        m1 -1 => 69
        m1 -2 i=i1 => 69
        m1 C 5 held => 69
        m1 H => 25
    """,
    "a pattern": """
        m1 0 regex=^t.* => =e1:0
        wait 1500
        m1 1 exact => =e2:6
        wait 1100
        m1 2 exact names=u regex= => =e2:0
    """,
    "commits by epoch": """
        m1 0 => e2:6
        m1 C 2 held => 0
        m1 C 9 held => 113
        wait 1100
        m2 0 => e3:0
        m1 2 => e2:3
        m1 2 tp=told => e3
        m2 3 => e3:3
        m1 C 3 held => 0
        m1 C 2 held => 0; <4.3: 113
        m1 C 2 other => 113
        m1 C 3 other => 0
        m2 C 2 held => 113
        m2 C 3 held v=8 => 35
        m3 C 3 held => 25
        m1 C -1 held => 113
    """,
    "commits of an administrator": """
        m1 0 => e2:6
        m2 C -1 held id= => 25
        m1 -1 => e-1
        m2 C -1 held id= => 0
    """,
    "a classic group is upgraded": """
        m1 J => 79
        m1 J => g1*
        m1 Y lead => y6
        m1 H => 0
        m2 0 => =e2:0
        m1 H => 27
        m1 Y => 27
        m1 J own => g1~
        m1 Y => y3
        m1 H => 27
        m1 J own => g2~
        m1 Y => y3
        m1 H => 0
        m2 2 exact => =e2:3
        m1 H g=1 => 22
        m1 C 2 held exact => 0
        m1 C 3 held exact => 22
        m1 Y protocol=other => 23
        m1 J protocol=other => 23
        m1 J type=connect => 23
        m1 J names=t,u own => g2~
    """,
    "a held member is asked to join again": """
        m1 J => 79
        m1 J => g1*
        m1 Y lead => y6
        m2 J => 79
        m2 J&
        wait 300
        m3 0 => =e2:0
        m2 ? => 27
        m2 J => g2~
    """,
    "a custom assignor is not upgraded": """
        m1 J => 79
        m1 J => g1*
        m1 Y lead userdata => y6
        m2 0 => 69
        m1 H => 0
    """,
    "an eager member of a mixed group": """
        m1 J => 79
        m1 J => g1*
        m1 Y lead => y6
        m2 0 => =e2:0
        m1 H => 27
        m1 J => g2~
        m1 Y => y3
        m2 2 exact => =e2:3
    """,
    "a classic member that does not join again": """
        m1 J rt=3000 => 79
        m1 J rt=3000 => g1*
        m1 Y lead => y6
        m2 0 => =e2:0
        m1 H => 27
        wait 2000
        m1 H => 27
        wait 1500
        m1 H => 25
        m2 2 exact => =e3:6
    """,
    "the last member of the consumer protocol leaves": """
        m1 J => 79
        m1 J => g1*
        m1 Y lead => y6
        m2 0 => =e2:0
        m1 H => 27
        m1 J => g2~
        m1 Y => y3
        m2 2 exact => =e2:3
        m2 -1 => =e-1
        m1 H => 27
        m1 H g=3 => 22
        m1 J => g3*
        m1 Y lead => y6
        m2 2 exact => 69
    """,
    "the last member of the consumer protocol is replaced": """
        m1 J i=i1 => g1*
        m1 Y i=i1 lead => y6
        m2 0 i=i2 => =e2:0
        m1 H i=i1 => 27
        m1 J i=i1 => g2~
        m1 Y i=i1 => y3
        m2 2 exact => =e2:3
        m2 -2 i=i2 => =e-2
        m3 J i=i2 => g2~
        m3 Y i=i2 => y3
        m1 H i=i1 => 0
    """,
    "an upgrade by replacement": """
        m1 J i=i1 => g1*
        m1 Y i=i1 lead => y6
        m2 0 i=i1 => =e1:6
        m2 1 exact => =e1
        m1 H i=i1 => 82
    """,
    "classic requests in a group of the consumer protocol": """
        m1 0 => e2:6
        m2 J => 79
        m2 J => g2~; <4.3: g2~
        m2 Y => y0; <4.3: y0
        m1 H g=2 => 25
        m1 Y g=2 => 25
        m1 L => 0
    """,
    "empty groups convert": """
        m1 0 => e2:6
        m1 -1 => e-1
        m2 J => 79
        m2 J => g1*
        m2 L => 0
        m1 0 => e2:6
    """,
    "an administrator removes the member": """
        m1 0 => e2:6
        m2 L whom=m1 => 0
        m1 2 => 25
        m2 L whom=m3 => 25
    """,
}
