"""What the monitor published, as those who show it know it: the page, ``top``, the tables of the terminal, traces and the replay.

``records`` reads one record, ``source`` the topics or a file, ``page_state`` keeps what they say, ``swim_lanes`` makes each member's
course out of events, ``sentences`` says what a group waits for and what happened, ``wire_text`` makes foreign names harmless.
"""
