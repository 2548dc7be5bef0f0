"""The page of ``rebalance-monitor web``: what happens in the groups, for a person with a browser.

``page_state`` keeps what the result topics say, ``swim_lanes`` makes each member's course out of events, ``drawing`` turns time into
places, ``views`` renders HTML and SVG, ``server`` serves them, ``source`` reads the topics or a file. Nothing here asks the monitor
itself: the page may run on another machine, and may end without harm.
"""
