"""Loops over packets, streams and frames, compiled by numba; ``wirekit.road.compiled`` provides them.

They know the numbers of TCP and no protocol. They mark every irregularity as odd and leave it to objects:
``wirekit.capture.tcp`` defines the meaning of a segment, and the loops agree with it on everything that they do not
mark.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

FIN, SYN, RST, ACK = 1, 2, 4, 16
HALF, MASK, WINDOW = 1 << 31, 0xFFFFFFFF, 1 << 30
MOST_REORDERED = 4096  # packets from the first segment beyond a hole to the one that fills it
PIECE_COST = 256  # bytes of memory that a held segment counts besides its payload, as in ``wirekit.capture.tcp``
RANKS, IN_ORDER, AT_FIN = 4, 2, 3  # ranks of a packet, of its bytes in order, and of its end; see ``follow_streams``
# The words of a flow's state: its own, then those of each side; ``wirekit.road.streams`` describes them.
LAST, RESET, OVER, SENDER, OF_FLOW = range(5)
BEGUN, START, FOLLOWING, SIZE, ACKED, UNSEEN, HEARD, ENDED, FLOOR, OF_SIDE = range(10)


@njit(nogil=True, cache=True)
def number_flows(
    low: Any, high: Any, numbers: Any, known_low: Any, known_high: Any, count: Any, table: Any
) -> Any:  # fmt: skip
    """Numbers pairs of endpoints in the order of their appearance; returns how many pairs have a number.

    ``known_low`` and ``known_high`` store the pair of each number. ``table`` is a hash table with a power of 2
    elements, more than there are pairs; -1 marks an empty element.
    """
    mask = table.size - 1
    for row in range(low.size):
        mixed = np.uint64(low[row]) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(high[row]) * np.uint64(
            0xC2B2AE3D27D4EB4F
        )
        slot = np.int64((mixed ^ mixed >> np.uint64(29)) & np.uint64(mask))
        while True:
            number = table[slot]
            if number < 0:
                table[slot] = number = count
                known_low[count], known_high[count] = low[row], high[row]
                count += 1
                break
            if known_low[number] == low[row] and known_high[number] == high[row]:
                break
            slot = slot + 1 & mask
        numbers[row] = number
    return count


@njit(nogil=True, cache=True)
def group_rows(rows: Any, numbers: Any, begins: Any, order: Any) -> Any:
    """Groups rows by number in ``order``; rows of one number stay in their order.

    ``begins`` has one element more than there are numbers, all 0; it receives the start of each number's rows.
    """
    for row in range(numbers.size):
        begins[numbers[row] + 1] += 1
    for number in range(begins.size - 1):
        begins[number + 1] += begins[number]
    place = begins[:-1].copy()
    for at in range(rows.size):
        number = numbers[rows[at]]
        order[place[number]] = rows[at]
        place[number] += 1


@njit(nogil=True, cache=True)
def put_in_order(
    order: Any, moved: Any, at: Any, stop: Any, side: Any, time: Any, source: Any, sequence: Any, acknowledgment: Any,
    flags: Any, length: Any, size: Any, hold: Any, patience: Any, most_held: Any, client: Any, following: Any,
    acked: Any, rows: Any, late: Any, held: Any, held_begins: Any, held_ends: Any,
) -> Any:  # fmt: skip
    """Moves segments beyond a hole behind the segment that fills it, where ``wirekit.capture.tcp`` releases them.

    Nothing is moved unless all holes are filled in time, by segments without other irregularities.

    Args:
        order, moved: the packets of the flow, and for each whether it was moved; both are changed.
        at, stop: the places of the first segment beyond the hole, and of the flow's end.
        side: its side.
        time to size: of each packet.
        hold, patience, most_held: the limits in ``wirekit.capture.tcp.Settings``.
        client: the endpoint that is the client.
        following: for each side, the sequence number of the next byte.
        acked: whether the bytes of the hole are already acknowledged.
        rows to held_ends: arrays of ``MOST_REORDERED`` elements, overwritten.

    Returns:
        The place after the segments in their new order, or ``at``.
    """
    next_byte, next_of_peer = np.int64(0), np.int64(0)  # counted from ``following``
    holding = count = cost = np.int64(0)
    before = time[order[at]]
    until = before + (hold if acked else patience)
    for place in range(at, min(stop, at + MOST_REORDERED)):
        row = order[place]
        here = np.int64(size[row])
        if not before <= time[row] <= until or flags[row] & (FIN | SYN | RST) or length[row] != here:
            return at
        before = time[row]
        own = (0 if source[row] == client else 1) == side
        begin = (sequence[row] - following[side if own else 1 - side] + HALF & MASK) - HALF
        end = begin + here
        if not own:
            if here and begin > next_of_peer:
                return at
            next_of_peer = max(next_of_peer, end) if here else next_of_peer
            if flags[row] & ACK and (acknowledgment[row] - following[side] + HALF & MASK) - HALF > next_byte:
                until = min(until, time[row] + hold)
        if not own or not here or end <= next_byte:
            rows[count], late[count] = row, False
            count += 1
        elif begin <= next_byte:
            if holding and end > held_begins[0]:
                return at
            rows[count], late[count] = row, False
            count, next_byte, freed = count + 1, end, 0
            while freed < holding and held_begins[freed] <= next_byte:
                rows[count], late[count] = held[freed], True
                next_byte, count, freed = max(next_byte, held_ends[freed]), count + 1, freed + 1
            for index in range(freed, holding):
                to = index - freed
                held[to], held_begins[to], held_ends[to] = held[index], held_begins[index], held_ends[index]
            holding -= freed
        else:
            cost += here + PIECE_COST
            if begin > WINDOW or cost > most_held:
                return at
            of_client = (acknowledgment[row] - following[0] + HALF & MASK) - HALF
            if side == 1 and flags[row] & ACK and of_client > next_of_peer:  # may it wait for bytes of the client?
                return at
            slot = holding
            while slot and held_begins[slot - 1] > begin:
                held[slot], held_begins[slot], held_ends[slot] = (
                    held[slot - 1], held_begins[slot - 1], held_ends[slot - 1]
                )  # fmt: skip
                slot -= 1
            top = held_ends[slot - 1] if slot else np.int64(0)
            if end > top and (begin < top or (slot < holding and held_begins[slot + 1] < end)):
                return at  # another segment has some of its bytes
            held[slot], held_begins[slot], held_ends[slot] = row, begin, max(end, top)
            holding += 1
        if not holding:
            order[at : at + count], moved[at : at + count] = rows[:count], late[:count]
            return at + count
    return at


@njit(nogil=True, cache=True)
def follow_streams(
    order: Any, moved: Any, begins: Any, time: Any, source: Any, sequence: Any, acknowledgment: Any, flags: Any,
    length: Any, size: Any, idle: Any, hold: Any, patience: Any, most_held: Any, clock: Any, last_window: Any,
    resumed: Any, reached: Any, state: Any, odd: Any, client: Any, known: Any, opened: Any, closed: Any, reason: Any,
    final: Any, sizes: Any, duplicates: Any, counts: Any, released: Any, ended: Any, fresh: Any, skipped: Any,
) -> Any:  # fmt: skip
    """Follows each flow that is one plain connection: its bytes arrive, in any order, without another handshake.

    Ranks order the events of a flow: ``RANKS`` times the place in ``order`` of the packet that brings an event, plus
    ``IN_ORDER`` for bytes in order, ``AT_FIN`` for an end, and 0 or 1 for bytes that were held until then.

    Args:
        order, begins: the rows of each flow, by time; ``put_in_order`` changes ``order``.
        moved: for each place in ``order``, whether its packet came earlier; all false.
        time to size: of each packet, in the order of the capture; ``size`` is the captured part of ``length``.
        idle to most_held: microseconds and bytes, as in ``wirekit.capture.tcp.Settings``.
        clock: the time of the window's end.
        last_window: whether nothing comes after it.
        resumed: of each flow, whether it continues from ``state``.
        reached: of each flow, the place in ``order`` up to which its packets are read; if it becomes odd, receives the
            place of the packet that makes it so, or of the last one if the end does.
        state: of each flow, words as ``wirekit.road.streams`` names them; gets those at the end of the window.
        odd: for each flow, whether it is ignored; set if it is not a plain connection.
        client: for each flow, the client if there is no handshake; receives the client.
        known: whether a resumed flow has a handshake; receives it for the others.
        opened, closed, reason: receive the times of the beginning and the end, and the reason: 0 end of capture, 1 FIN,
            2 RST.
        final: receives whether the flow has ended.
        sizes, duplicates, counts: (flow, side) receive the bytes in order, retransmitted bytes, and pieces.
        released: (flow, side) receives the rank at which bytes were released that waited for earlier bytes.
        ended: (flow, side) receives rank and time of the side's FIN, or -1.
        fresh, skipped: for each place in ``order``, receive the packet's new bytes, and the bytes before them.
    """
    following = np.zeros(2, np.int64)  # sequence number of the next byte
    start = np.zeros(2, np.int64)
    before = np.zeros(2, np.int64)  # bytes of earlier windows
    acked = np.zeros(2, np.int64)
    begun = np.zeros(2, np.bool_)
    unseen = np.zeros(2, np.int64)  # the first acknowledgment of a side without captured packets, or -1
    heard = np.zeros(2, np.int64)  # bytes acknowledged from there on
    settle = np.zeros(2, np.int64)  # until then a lower sequence number may still come, -1 when none may
    ends = np.zeros(2, np.int64)  # time of the FIN, or -1
    floor = np.zeros(2, np.int64)  # bytes before this one are not all known
    rows, held, held_begins, held_ends = np.zeros((4, MOST_REORDERED), np.int64)
    late = np.zeros(MOST_REORDERED, np.bool_)
    for flow in range(begins.size - 1):
        if odd[flow]:
            continue
        row = order[begins[flow]]
        first = begins[flow]
        sizes[flow, :] = duplicates[flow, :] = counts[flow, :] = released[flow, :] = 0
        ended[flow, :, :] = settle[:] = -1
        sender = 0 if source[row] == client[flow] else 1  # side of the first packet
        if resumed[flow]:
            words = state[flow]
            last, reset, over, sender = words[LAST], words[RESET], words[OVER], words[SENDER]
            plain = True
            for side in range(2):
                words = state[flow, OF_FLOW + OF_SIDE * side :]
                begun[side], start[side], following[side] = words[BEGUN] != 0, words[START], words[FOLLOWING]
                before[side], acked[side], unseen[side] = words[SIZE], words[ACKED], words[UNSEEN]
                heard[side], ends[side], floor[side] = words[HEARD], words[ENDED], words[FLOOR]
        else:
            opened[flow] = last = time[row]
            plain = last >= 0
            known[flow] = flags[row] & (SYN | ACK | RST | FIN) == SYN and not length[row] and not size[row]
            start[:] = ends[:] = unseen[:] = -1
            heard[:] = acked[:] = before[:] = floor[:] = following[:] = 0
            begun[:] = False
            if known[flow]:
                client[flow] = source[row]
                sender = 0
                first += 1
                start[0] = following[0] = sequence[row] + 1 & MASK
                begun[0] = True
            else:
                plain = plain and not flags[row] & (SYN | RST | FIN)
            reset = np.int64(-1)
            over = np.int64(-1)
        stop = reached[flow]
        ends_here = last_window and stop == begins[flow + 1]
        until = clock if stop == begins[flow + 1] else time[order[stop]]
        place = unordered = ordered = begins[flow]  # the latest packets that are put in order, and their end
        for at in range(first, stop):
            if not plain:
                break
            place = at
            row = order[at]
            side = 0 if source[row] == client[flow] else 1
            hole = size[row] and (sequence[row] - following[side] - 1 & MASK) < WINDOW and at >= ordered
            if hole and reset < 0 and settle.max() < 0 and ends.max() < 0 and begun.all():
                unordered = at
                ordered = put_in_order(
                    order, moved, at, stop, side, time, source, sequence, acknowledgment, flags, length, size, hold,
                    patience, most_held, client[flow], following, acked[side] > before[side] + sizes[flow, side], rows,
                    late, held, held_begins, held_ends,
                )  # fmt: skip
                row = order[at]
                side = 0 if source[row] == client[flow] else 1
            now, bits, here = time[row], flags[row], np.int64(size[row])
            now = max(now, last) if moved[at] else now
            if now < last or now - last > idle or length[row] != here:  # before: the clock was set back
                plain = False
                break
            if over < 0 and 0 <= reset < now - hold:
                over = last
            last = now
            for turn in range(2):
                waiting = sender if turn == 0 else 1 - sender
                other = 1 - waiting
                if settle[other] >= 0 and (settle[waiting] < 0 or settle[other] < settle[waiting]):
                    waiting = other
                if 0 <= settle[waiting] < now:
                    settle[waiting] = -1
                    released[flow, waiting] = RANKS * at + turn
            both = ends[0] >= 0 and ends[1] >= 0
            distance = (sequence[row] - following[side] + HALF & MASK) - HALF
            if bits & (RST | SYN | FIN) and (settle[0] >= 0 or settle[1] >= 0):
                plain = False
                break
            if bits & RST:
                near = not begun[side] or sequence[row] == 0 or abs(distance) <= WINDOW
                plain = not here and not bits & SYN and near
                if reset < 0 and not both:
                    reset = now
                continue
            if reset >= 0 and (here or bits & (SYN | FIN)):
                plain = False
            elif bits & SYN:
                begin = sequence[row] + 1 & MASK
                if here or both or bits & FIN or not known[flow]:
                    plain = False
                elif side == 0:
                    plain = not bits & ACK and begin == start[0]
                elif not bits & ACK or acknowledgment[row] != start[0]:
                    plain = False
                elif begun[1]:
                    plain = begin == start[1]
                else:
                    begun[1] = True
                    start[1] = following[1] = begin
                continue
            elif known[flow]:
                plain = begun[1]
            elif not begun[side]:
                if here:
                    missing = sequence[row] - unseen[side] & MASK
                    plain = unseen[side] < 0 or not 0 < missing <= heard[side]
                    begun[side] = True
                    following[side] = sequence[row]
                    settle[side] = now + hold
                    distance = 0
                elif bits & FIN:
                    plain = False
            if not plain:
                break
            if here and side == 1 and bits & ACK and begun[0] and ends[0] < 0:  # may it wait for bytes of the client?
                ahead = (acknowledgment[row] - following[0] + HALF & MASK) - HALF
                if settle[0] >= 0 and (sender == 1 or settle[1] <= settle[0]):
                    ahead += sizes[flow, 0]
                if 0 < ahead <= WINDOW:
                    plain = False
                    break
            if here:
                if (
                    distance > 0
                    or before[side] + sizes[flow, side] + distance < floor[side]
                    or (distance < 0 and settle[side] >= 0)
                    or both
                    or (ends[side] >= 0 and here + distance > 0)
                ):
                    plain = False
                    break
                again = min(-distance, here)
                duplicates[flow, side] += again
                skipped[at] = again
                fresh[at] = here - again
                if fresh[at]:
                    counts[flow, side] += 1
                    sizes[flow, side] += fresh[at]
                    following[side] = following[side] + fresh[at] & MASK
            if bits & FIN and ends[side] < 0:
                if distance + here != (fresh[at] if here else 0):
                    plain = False
                    break
                ended[flow, side, 0], ended[flow, side, 1] = RANKS * at + AT_FIN, now
                ends[side] = now
                if ends[1 - side] >= 0:
                    over = now
            peer = 1 - side
            if bits & ACK and not begun[peer]:
                if unseen[peer] < 0:
                    unseen[peer] = acknowledgment[row]
                more = acknowledgment[row] - unseen[peer] & MASK
                if heard[peer] < more <= WINDOW:
                    heard[peer] = more
            elif bits & ACK and (reset < 0 or now <= reset + hold):
                ahead = (acknowledgment[row] - following[peer] + HALF & MASK) - HALF
                unsettled = sizes[flow, peer] if settle[peer] >= 0 else np.int64(0)
                if 0 < ahead <= WINDOW - unsettled:
                    acked[peer] = max(acked[peer], before[peer] + sizes[flow, peer] + ahead)
        both = ends[0] >= 0 and ends[1] >= 0
        final[flow] = ends_here or both or 0 <= reset < until - hold
        leading = 1 - sender if not ends_here and 0 <= settle[1 - sender] < settle[sender] else sender
        for turn in range(2):
            side = leading if turn == 0 else 1 - leading
            if settle[side] >= 0:
                released[flow, side] = RANKS * stop + turn
                plain = plain and ends_here
            missed = acked[side] > before[side] + sizes[flow, side] + 1 or (not begun[side] and heard[side] > 0)
            if final[flow] and ends[side] < 0 and missed:
                plain = False
        if not plain:
            odd[flow], reached[flow] = True, unordered if unordered <= place < ordered else place
            continue
        if both:
            closed[flow], reason[flow] = over, 1
        elif reset >= 0:
            closed[flow], reason[flow] = reset, 2
        else:
            closed[flow], reason[flow] = last, 0
        words = state[flow]
        words[LAST], words[RESET], words[OVER], words[SENDER] = last, reset, over, sender
        for side in range(2):
            words = state[flow, OF_FLOW + OF_SIDE * side :]
            words[BEGUN], words[START], words[FOLLOWING] = begun[side], start[side], following[side]
            words[SIZE], words[ACKED] = before[side] + sizes[flow, side], acked[side]
            words[UNSEEN], words[HEARD] = unseen[side], heard[side]
            words[ENDED], words[FLOOR] = ends[side], floor[side]


@njit(nogil=True, cache=True)
def copy(target: Any, at: Any, source: Any, start: Any, count: Any) -> Any:
    """Copies bytes. The index counts from 0, so that numba sees no negative index and copies many bytes at once."""
    there, here = target[at : at + count], source[start : start + count]
    for index in range(count):
        there[index] = here[index]


@njit(nogil=True, cache=True)
def copy_streams(
    data: Any, order: Any, begins: Any, reached: Any, time: Any, source: Any, begin: Any, odd: Any, client: Any,
    released: Any, places: Any, pieces: Any, fresh: Any, skipped: Any, stream: Any, ends: Any, times: Any, ranks: Any,
    sources: Any,
) -> Any:  # fmt: skip
    """Concatenates the bytes of plain connections in ``stream``, side by side.

    Args:
        data: the bytes of the capture; ``begin`` has the start of each packet's payload.
        places, pieces: (flow, side) the start of the side in ``stream``, and the number of its first piece.
        ends, times, ranks: receive, for each piece, its end in ``stream``, its time and its rank.
        sources: receives the start of each piece in ``data``.
    """
    place = np.zeros(2, np.int64)
    piece = np.zeros(2, np.int64)
    for flow in range(begins.size - 1):
        if odd[flow]:
            continue
        place[:] = places[flow]
        piece[:] = pieces[flow]
        for at in range(begins[flow], reached[flow]):
            count = fresh[at]
            if not count:
                continue
            row = order[at]
            side = 0 if source[row] == client[flow] else 1
            first, to = begin[row] + skipped[at], place[side]
            copy(stream, to, data, first, count)
            place[side] = to + count
            ends[piece[side]] = to + count
            times[piece[side]] = time[row]
            sources[piece[side]] = first
            ranks[piece[side]] = max(RANKS * at + IN_ORDER, released[flow, side])
            piece[side] += 1


@njit(nogil=True, cache=True)
def copy_ranges(data: Any, begin: Any, size: Any, content: Any) -> Any:
    """Concatenates ranges of ``data``."""
    to = 0
    for number in range(begin.size):
        copy(content, to, data, begin[number], size[number])
        to += size[number]


@njit(nogil=True, cache=True)
def cut_frames(
    stream: Any,
    starts: Any,
    stops: Any,
    pieces: Any,
    ends: Any,
    at: Any,
    width: Any,
    little: Any,
    after: Any,
    least: Any,
    most: Any,
    fits: Any,
    tails: Any,
    frame_starts: Any,
    frame_stops: Any,
    frame_streams: Any,
    frame_pieces: Any,
) -> Any:
    """Cuts streams into frames by their length fields; returns the number of frames, or -1 if there is too little room.

    Args:
        starts, stops, pieces: for each stream, its range and the number of its first piece.
        ends: the end of each piece.
        at to most: for each stream, the length field of its frames: offset, size in bytes, whether it is little-endian,
            the bytes of the frame that it does not count, and its bounds.
        fits: receives whether all lengths are within their bounds.
        tails: receives the start of the frame that the end of the stream cuts, or that end.
        frame_starts to frame_pieces: receive, for each frame, its range, its stream and the piece with its last byte.
    """
    count = 0
    for number in range(starts.size):
        position, stop, piece = starts[number], stops[number], pieces[number]
        fits[number] = True
        while position + at[number] + width[number] <= stop:
            length = np.int64(0)
            for index in range(width[number]):
                shift = index if little[number] else width[number] - 1 - index
                length |= np.int64(stream[position + at[number] + index]) << 8 * shift
            if length < least[number] or length > most[number]:
                fits[number] = False
                break
            behind = position + length + after[number]
            if behind > stop:
                break
            if count == frame_starts.size:
                return -1
            while ends[piece] < behind:
                piece += 1
            frame_starts[count], frame_stops[count] = position, behind
            frame_streams[count], frame_pieces[count] = number, piece
            count += 1
            position = behind
        tails[number] = position
    return count


@njit(nogil=True, cache=True)
def pair_frames(
    connection: Any,
    side: Any,
    size: Any,
    link: Any,
    first: Any,
    second: Any,
    role: Any,
    ordered: Any,
    most: Any,
    alone: Any,
    opening: Any,
    odd: Any,
    irregular: Any,
    request: Any,
    table: Any,
) -> Any:
    """Pairs each response with its request: the waiting request with the same numbers.

    Args:
        connection, link, first, second: numbers that a request and its response have in common; frames are ordered by
            connection, then by arrival.
        side, size: the side of each frame, 0 or 1, and its bytes.
        role: 1 for a request that is answered, 2 for a response, 0 for anything else.
        ordered: for each frame, whether its protocol answers in order.
        most: the number and the bytes of requests that may wait at once; and of those before the first frame of the
            other side.
        alone: for each connection, whether one side has sent nothing so far; any number of requests may wait.
        opening: for each connection, whether a side has sent its first bytes among those of these frames.
        odd: for each connection, set if more requests wait, a response has no request, two requests wait with the same
            numbers, or answers are out of order in a protocol that answers in order.
        irregular: for each connection, receives the first such frame if it is before the given one.
        request: receives, for each frame, the number of its request or -1.
        table: a hash table with a power of 2 elements, more than there are frames, all -1.
    """
    mask = table.size - 1
    waits = np.zeros(connection.size, np.bool_)
    owner: Any = np.int64(-1)
    latest: Any = np.int64(-1)
    outstanding = waiting_bytes = heard = 0
    for frame in range(connection.size):
        request[frame] = -1
        if connection[frame] != owner:
            owner, latest, outstanding, waiting_bytes, heard = connection[frame], -1, 0, 0, 0
        heard |= 1 << side[frame]
        if role[frame] == 0:
            continue
        mixed = np.uint64(connection[frame]) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ np.uint64(link[frame])) * np.uint64(0xC2B2AE3D27D4EB4F)
        mixed = (mixed ^ np.uint64(first[frame])) * np.uint64(0x165667B19E3779F9)
        mixed = (mixed ^ np.uint64(second[frame])) * np.uint64(0x9E3779B97F4A7C15)
        slot = np.int64((mixed ^ mixed >> np.uint64(31)) & np.uint64(mask))
        while table[slot] >= 0:
            other = table[slot]
            if (
                connection[other] == owner and link[other] == link[frame]
                and first[other] == first[frame] and second[other] == second[frame]
            ):  # fmt: skip
                break
            slot = slot + 1 & mask
        asked = table[slot]
        waiting = asked >= 0 and waits[asked]
        if role[frame] == 1:
            outstanding += 1
            waiting_bytes += size[frame]
            allowed = 1 if opening[owner] and heard != 3 else 0
            many = outstanding >= most[allowed, 0] or waiting_bytes >= most[allowed, 1]
            if waiting or (many and not alone[owner]):
                odd[owner], irregular[owner] = True, min(irregular[owner], frame)
            table[slot] = frame
            waits[frame] = True
        elif not waiting or (ordered[frame] and asked < latest):
            odd[owner], irregular[owner] = True, min(irregular[owner], frame)
        else:
            request[frame] = latest = asked
            waits[asked] = False
            outstanding -= 1
            waiting_bytes -= size[asked]
