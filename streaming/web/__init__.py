"""The page of ``rebalance-monitor web``: what happens in the groups, for a person with a browser.

``drawing`` turns time into places, ``views`` renders HTML and SVG, ``server`` serves them. Nothing here asks the monitor itself: the page
may run on another machine, and may end without harm.
"""
