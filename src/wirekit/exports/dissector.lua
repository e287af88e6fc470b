-- The functions that a dissector written by `wirekit schemas --output lua` is made of: one for each kind of node.
-- A node is a function of the place that it reads at, the fields read before, and the tree to show itself in (or nil).

local bits = bit32 or load([[return {
  band = function(a, b) return a & b end, bor = function(a, b) return a | b end, bxor = function(a, b) return a ~ b end,
  rshift = function(a, n) return (a & 0xffffffff) >> n end, lshift = function(a, n) return (a << n) & 0xffffffff end,
}]])()

local MOST_ELEMENTS, DEEPEST = 1000000, 32
local IS_TEXT = " is text"

local function fail(s, text)
  error({ text = text, position = s.pos }, 0)
end

-- A number in a message; the tree shows numbers of more than 53 bits, of which Lua has an approximation.
local function exact(number)
  if type(number) ~= "number" then return tostring(number) end
  if math.abs(number) < 2 ^ 53 then return string.format("%.0f", number) end
  return number < 0 and "less than -2^53" or "2^53 or more"
end

local function take(s, size)
  if size < 0 or size > s.limit - s.pos then
    fail(s, "needs " .. exact(size) .. " bytes, " .. (s.limit - s.pos) .. " available")
  end
  local start = s.pos
  s.pos = start + size
  return s.tvb(start, size)
end

-- Fields read before. -------------------------------------------------------------------------------------------------

local function get(scope, up, ...)
  for _ = 1, up do
    scope = scope and scope.outer
  end
  local at = scope and scope.values
  for _, name in ipairs({ ... }) do
    if type(at) ~= "table" then
      return nil
    end
    at = at[name]
  end
  return at
end

-- Well-formed sequences of UTF-8 by the number of bytes that follow the first; any other byte is a character.
local SEQUENCES = {
  { "[\194-\223][\128-\191]", 1 }, { "\224[\160-\191][\128-\191]", 2 }, { "[\225-\236\238\239][\128-\191][\128-\191]", 2 },
  { "\237[\128-\159][\128-\191]", 2 }, { "\240[\144-\191][\128-\191][\128-\191]", 3 },
  { "[\241-\243][\128-\191][\128-\191][\128-\191]", 3 }, { "\244[\128-\143][\128-\191][\128-\191]", 3 },
}

-- The number of characters of a text, of bytes, or of elements.
local function length_of(value, is_text)
  local size = value == nil and 0 or #value
  for _, each in ipairs(is_text and type(value) == "string" and SEQUENCES or {}) do
    size = size - each[2] * select(2, value:gsub(each[1], ""))
  end
  return size
end

local function truth(value)
  return not (value == nil or value == false or value == 0 or value == "" or (type(value) == "table" and value.list and #value == 0))
end

local function as_number(value)
  return type(value) == "boolean" and (value and 1 or 0) or value
end

local function compared(compare)
  return function(a, b)
    a, b = as_number(a), as_number(b)
    return a ~= nil and b ~= nil and type(a) == type(b) and compare(a, b)
  end
end

local function joined(logical, bitwise)
  return function(a, b)
    if type(a) == "boolean" and type(b) == "boolean" then
      return logical(a, b)
    end
    a, b = as_number(a), as_number(b)
    local function part(divisor) return bitwise(math.floor(a / divisor) % 2 ^ 32, math.floor(b / divisor) % 2 ^ 32) end
    local negative = bitwise(a < 0 and 1 or 0, b < 0 and 1 or 0) == 1
    return (negative and part(2 ^ 32) - 2 ^ 32 or part(2 ^ 32)) * 2 ^ 32 + part(1)
  end
end

local function numeric(compute)
  return function(a, b) return compute(as_number(a), as_number(b)) end
end

local operators = {
  ["+"] = numeric(function(a, b) return b == nil and a or a + b end),
  ["-"] = numeric(function(a, b) return b == nil and -a or a - b end),
  ["*"] = numeric(function(a, b) return a * b end),
  ["//"] = numeric(function(a, b) return math.floor(a / b) end),
  ["%"] = numeric(function(a, b) return a % b end),
  ["<<"] = numeric(function(a, b) return a * 2 ^ b end),
  [">>"] = numeric(function(a, b) return math.floor(a / 2 ^ b) end),
  ["&"] = joined(function(a, b) return a and b end, bits.band),
  ["|"] = joined(function(a, b) return a or b end, bits.bor),
  ["^"] = joined(function(a, b) return a ~= b end, bits.bxor),
  ["=="] = numeric(function(a, b) return a == b end),
  ["!="] = numeric(function(a, b) return a ~= b end),
  ["<"] = compared(function(a, b) return a < b end),
  ["<="] = compared(function(a, b) return a <= b end),
  [">"] = compared(function(a, b) return a > b end),
  [">="] = compared(function(a, b) return a >= b end),
  ["not "] = function(a) return not truth(a) end,
}

-- Numbers and bytes. --------------------------------------------------------------------------------------------------

local function reader(size, signed, real, little)
  local name = (little and "le_" or "") .. (real and "float" or (signed and "int" or "uint") .. (size == 8 and "64" or ""))
  return function(range)
    local value = range[name](range)
    if size == 8 and not real then
      return value:tonumber()
    end
    return value
  end
end

local function number(field, size, signed, real, little)
  local read = reader(size, signed, real, little)
  return function(s, scope, tree)
    local range = take(s, size)
    if tree and field then
      if little then tree:add_le(field, range) else tree:add(field, range) end
    end
    return read(range)
  end
end

local function flag(node)
  return function(s, scope, tree) return node(s, scope, tree) ~= 0 end
end

-- The 32 low bits of an integer, and the others: a number of Lua is exact up to 53 bits.
local function halves(range, size, little)
  local low, high = 0, 0
  for index = 0, size - 1 do
    local byte = range(little and index or size - 1 - index, 1):uint()
    if index < 4 then low = low + byte * 2 ^ (8 * index) else high = high + byte * 2 ^ (8 * index - 32) end
  end
  return low, high
end

-- An integer of 3, 5, 6 or 7 bytes; Wireshark has fields for some of them only.
local function odd_number(field, size, signed, little)
  return function(s, scope, tree)
    local range = take(s, size)
    local low, high = halves(range, size, little)
    local negative = signed and range(little and size - 1 or 0, 1):uint() >= 128
    if negative then high = high + 2 ^ 32 - 2 ^ (8 * size - 32) end
    if size == 3 then
      local value = negative and low - 2 ^ 24 or low
      if tree then tree:add(field, range, value) end
      return value
    end
    if tree then tree:add(field, range, (signed and Int64 or UInt64).new(low, high)) end
    return (negative and high - 2 ^ 32 or high) * 2 ^ 32 + low
  end
end

local function closed(node, values)
  return function(s, scope, tree)
    local value = node(s, scope, tree)
    if not values[value] then
      fail(s, exact(value) .. " is not a value that is known")
    end
    return value
  end
end

local function bit_fields(field, size, little, fields)
  return function(s, scope, tree)
    local range = take(s, size)
    local low, high = halves(range, size, little)
    local sub = tree and tree:add(field, range)
    local value = {}
    for _, each in ipairs(fields) do
      local name, width, shift, shown = table.unpack(each)
      local down, up = low, high
      if shift >= 32 then down, up, shift = high, 0, shift - 32 end
      down = (math.floor(down / 2 ^ shift) + up % 2 ^ shift * 2 ^ (32 - shift)) % 2 ^ math.min(width, 32)
      up = math.floor(up / 2 ^ shift) % 2 ^ math.max(width - 32, 0)
      value[name] = up * 2 ^ 32 + down
      if sub then sub:add(shown, range, width > 32 and UInt64.new(down, up) or down) end
    end
    return value
  end
end

local function shown_null(s, tree, name)
  if tree then tree:add(s.tvb(s.pos, 0), name .. ": null") end
  return nil
end

-- The text, in UTF-8, or the bytes of a range; a structure stores which of them.
local function string_of(s, tree, field, range, is_text)
  s.is_text = is_text
  if tree and is_text then tree:add_packet_field(field, range, ENC_UTF_8) elseif tree then tree:add(field, range) end
  return range:len() == 0 and "" or range:raw()
end

-- `length` is a node, a function of the fields read before, or nil for all bytes up to the limit.
local function blob(field, name, is_text, length, computed, null)
  return function(s, scope, tree)
    local size = s.limit - s.pos
    if length then
      size = computed and length(s, scope) or length(s, scope, tree)
      if null and size == null then return shown_null(s, tree, name) end
      if size == nil then fail(s, "the length of " .. name .. " is not known") end
    end
    return string_of(s, tree, field, take(s, size), is_text)
  end
end

local function padded(node, pad)
  return function(s, scope, tree)
    local value = node(s, scope, tree)
    while value and value:sub(-#pad) == pad do value = value:sub(1, -#pad - 1) end
    return value
  end
end

local function delimited(field, stop, decimal)
  return function(s, scope, tree)
    local data = s.tvb:raw(s.pos, s.limit - s.pos)
    local first = data:find(stop, 1, true)
    if not first then fail(s, "its end is not there") end
    local value = string_of(s, tree, field, take(s, first - 1), not decimal)
    s.pos = s.pos + #stop
    return decimal and tonumber(value) or value
  end
end

-- Checksums. ----------------------------------------------------------------------------------------------------------

local function crc(polynomial)
  local words = {}
  for index = 0, 255 do
    local word = index
    for _ = 1, 8 do
      word = bits.band(word, 1) == 1 and bits.bxor(bits.rshift(word, 1), polynomial) or bits.rshift(word, 1)
    end
    words[index] = word
  end
  return function(data)
    local word = 0xffffffff
    for index = 1, #data do
      word = bits.bxor(words[bits.band(bits.bxor(word, data:byte(index)), 0xff)], bits.rshift(word, 8))
    end
    return bits.bxor(word, 0xffffffff)
  end
end

local checksums = { crc32 = crc(0xedb88320), crc32c = crc(0x82f63b78) }

local function verify(s, tree, members, starts, ends, scope, sum)
  local stored = scope.values[members[sum.at][1]]
  if stored == nil or not tree then return end
  local from, to, at = starts[sum.first], ends[sum.last], starts[sum.at]
  if sum.content then from = from + sum.content end
  local data = s.tvb:raw(from, to - from)
  if at >= from and at < to then
    data = data:sub(1, at - from) .. ("\0"):rep(ends[sum.at] - at) .. data:sub(ends[sum.at] - from + 1)
  end
  local ok = checksums[sum.algorithm](data) == stored % 2 ^ 32
  local item = tree:add(sum.field, s.tvb(at, ends[sum.at] - at), ok)
  item:set_generated()
  if not ok then item:add_proto_expert_info(s.bad_checksum, sum.algorithm .. " does not fit what it covers") end
end

-- What holds other nodes. ---------------------------------------------------------------------------------------------

local function rest_of(s, tree, stop, text)
  if s.pos < stop then
    if tree then tree:add(s.tvb(s.pos, stop - s.pos), (stop - s.pos) .. " bytes " .. text) end
    s.pos = stop
  end
end

-- `field` is the field of the subtree, a text for an element of a list, or false at the top.
local function branch(s, tree, field)
  if not tree or field == false then return tree end
  if field == "[]" then return tree:add(s.tvb(s.pos, 0), "[" .. (s.index or 0) .. "]") end
  return tree:add(field, s.tvb(s.pos, 0))
end

local function close_branch(s, tree, sub, start)
  if sub and sub ~= tree then sub:set_len(s.pos - start) end
end

local function structure(field, members, measures, sums)
  return function(s, outer, tree)
    local scope, starts, ends, open = { values = {}, outer = outer }, {}, {}, {}
    local start, sub = s.pos, branch(s, tree, field)
    for index, member in ipairs(members) do
      for _, measure in ipairs(measures) do
        local size = measure.first == index and measure.at < index and scope.values[members[measure.at][1]]
        if size and measure.bounds and not (measure.zero_is_rest and size == 0) then
          size = size - measure.add
          if size < 0 then fail(s, members[measure.at][1] .. " is too small") end
          local cut = size > s.limit - s.pos
          open[#open + 1] = { last = measure.last, outer = s.limit, stop = math.min(s.pos + size, s.limit),
            cut = cut and not measure.clip }
          s.limit = open[#open].stop
        end
      end
      starts[index], scope.values._position = s.pos, s.pos - start
      s.is_text = nil
      scope.values[member[1]] = member[2](s, scope, sub)
      scope.values[member[1] .. IS_TEXT] = s.is_text
      ends[index] = s.pos
      while #open > 0 and open[#open].last == index do
        local bound = table.remove(open)
        rest_of(s, sub, bound.stop, "left over inside the length")
        s.limit = bound.outer
        if bound.cut then fail(s, "a length goes beyond what is there") end
      end
    end
    for _, sum in ipairs(sums) do
      verify(s, sub, members, starts, ends, scope, sum)
    end
    close_branch(s, tree, sub, start)
    return scope.values
  end
end

local function attempt(s, scope, node)
  local place = { tvb = s.tvb, pos = s.pos, limit = s.limit, context = s.context, depth = s.depth }
  local ok, problem = pcall(node, place, scope, nil)
  if not ok and type(problem) ~= "table" then error(problem, 0) end
  return ok
end

-- `count` is a node, a function of the fields read before, or nil for elements up to the limit.
local function several(field, name, element, count, computed, null, stop, tail, except_first)
  return function(s, scope, tree)
    local size
    if count then
      size = computed and count(s, scope) or count(s, scope, tree)
      if null and size == null then return shown_null(s, tree, name) end
      if not size or size < 0 or size > MOST_ELEMENTS then fail(s, "a count of " .. exact(size)) end
    end
    local start, sub = s.pos, tree and tree:add(field, s.tvb(s.pos, 0))
    local value = { list = true }
    while size and #value < size or not size and s.pos < s.limit do
      if tail and (#value > 0 or not except_first) and s.limit - s.pos >= #tail and s.tvb:raw(s.pos, #tail) == tail then break end
      if stop and not attempt(s, scope, element) then break end
      local before = s.pos
      s.index = #value
      local item = element(s, scope, sub)
      if item == nil then item = false end
      value[#value + 1] = item
      if s.pos == before and not size then fail(s, "an empty element") end
      if s.pos == before and #value > s.limit - start then fail(s, "a count of " .. exact(size)) end
    end
    if sub then
      sub:set_text(name .. ": " .. #value .. (#value == 1 and " element" or " elements"))
      sub:set_len(s.pos - start)
    end
    return value
  end
end

local function when(condition, node, name)
  return function(s, scope, tree)
    if truth(condition(s, scope)) then return node(s, scope, tree) end
  end
end

local function when_next(magic, node)
  return function(s, scope, tree)
    if s.limit - s.pos >= #magic and s.tvb:raw(s.pos, #magic) == magic then return node(s, scope, tree) end
  end
end

local function when_more(node)
  return function(s, scope, tree)
    if s.pos < s.limit then return node(s, scope, tree) end
  end
end

local function either(condition, first, second)
  return function(s, scope, tree)
    if truth(condition(s, scope)) then return first(s, scope, tree) end
    return second(s, scope, tree)
  end
end

local NONE = {}

local function choice(on, cases, otherwise)
  return function(s, scope, tree)
    local values = {}
    for index, expression in ipairs(on) do
      values[index] = expression(s, scope)
      if values[index] == nil then values[index] = NONE end
    end
    for _, case in ipairs(cases) do
      local fits = true
      for index, value in ipairs(case[1]) do
        fits = fits and as_number(values[index]) == as_number(value)
      end
      if fits then return case[2](s, scope, tree) end
    end
    if not otherwise then fail(s, "a value that no case is for") end
    return otherwise(s, scope, tree)
  end
end

local function ahead(node, at)
  return function(s, scope, tree)
    local start = s.pos
    take(s, at)
    local value = node(s, scope, tree)
    s.pos = start
    return value
  end
end

local function bounded(length, node, name, null)
  return function(s, scope, tree)
    local size = length(s, scope, tree)
    if null and size == null then return shown_null(s, tree, name) end
    local outer, cut = s.limit, size > s.limit - s.pos
    if size < 0 then fail(s, "a length of " .. exact(size)) end
    s.limit = math.min(s.pos + size, outer)
    local value = node(s, scope, tree)
    rest_of(s, tree, s.limit, "left over inside the length")
    s.limit = outer
    if cut then fail(s, "a length goes beyond what is there") end
    return value
  end
end

local function fallback(node, bytes)
  return function(s, scope, tree)
    if attempt(s, scope, node) then return node(s, scope, tree) end
    return bytes(s, scope, tree)
  end
end

local function reference(nodes, index)
  return function(s, _, tree)
    s.depth = (s.depth or 0) + 1
    if s.depth > DEEPEST then fail(s, "layouts inside of more than " .. DEEPEST .. " others") end
    local value = nodes[index](s, nil, tree)
    s.depth = s.depth - 1
    return value
  end
end

local function constant(node, expected, fatal)
  return function(s, scope, tree)
    local value = node(s, scope, tree)
    local wanted = expected(s, scope)
    if value ~= wanted and type(value) == type(wanted) then
      if fatal then fail(s, "expected " .. exact(wanted) .. ", found " .. exact(value)) end
      if tree then tree:add_proto_expert_info(s.problem, "expected " .. exact(wanted)) end
    end
    return value
  end
end

-- Compressed data. ----------------------------------------------------------------------------------------------------

local LARGEST_OPENED = 64 * 1024 * 1024

local function window()
  -- Pieces are joined when there are many, so that copies from far back stay quick.
  local out, size = "", 0
  local pieces, waiting = {}, 0
  local self = {}
  function self.add(piece)
    pieces[#pieces + 1] = piece
    waiting, size = waiting + #piece, size + #piece
    if size > LARGEST_OPENED then error("too large", 0) end
  end
  function self.text()
    if waiting > 0 then
      out, pieces, waiting = out .. table.concat(pieces), {}, 0
    end
    return out
  end
  function self.copy(distance, count)
    local before = self.text()
    if distance < 1 or distance > #before then error("a copy from before the start", 0) end
    local piece = before:sub(#before - distance + 1, math.min(#before, #before - distance + count))
    while #piece < count do
      piece = piece .. piece:sub(1, count - #piece)
    end
    self.add(piece)
  end
  return self
end

local function little(data, at, size)
  local value = 0
  for index = size - 1, 0, -1 do
    value = value * 256 + data:byte(at + index)
  end
  return value
end

local function snappy(data)
  local at, shift = 1, 0
  while data:byte(at) >= 128 do at = at + 1 end
  at = at + 1
  local out = window()
  while at <= #data do
    local tag = data:byte(at)
    local kind, high = tag % 4, math.floor(tag / 4)
    at = at + 1
    if kind == 0 then
      local count = high + 1
      if high >= 60 then
        count = little(data, at, high - 59) + 1
        at = at + high - 59
      end
      out.add(data:sub(at, at + count - 1))
      at = at + count
    elseif kind == 1 then
      out.copy(math.floor(tag / 32) * 256 + data:byte(at), high % 8 + 4)
      at = at + 1
    else
      local size = kind == 2 and 2 or 4
      out.copy(little(data, at, size), high + 1)
      at = at + size
    end
  end
  return out.text()
end

local function java_snappy(data)
  if data:sub(1, 8) ~= "\130SNAPPY\0" then return snappy(data) end
  local at, parts = 17, {}
  while at <= #data do
    local size = ((data:byte(at) * 256 + data:byte(at + 1)) * 256 + data:byte(at + 2)) * 256 + data:byte(at + 3)
    parts[#parts + 1] = snappy(data:sub(at + 4, at + 3 + size))
    at = at + 4 + size
  end
  return table.concat(parts)
end

local function lz4_block(data, out)
  out = out or window()
  local at = 1
  local function extended(count)
    if count == 15 then
      repeat
        local more = data:byte(at)
        at, count = at + 1, count + more
      until more < 255
    end
    return count
  end
  while at <= #data do
    local token = data:byte(at)
    at = at + 1
    local literals = extended(math.floor(token / 16))
    out.add(data:sub(at, at + literals - 1))
    at = at + literals
    if at <= #data then
      local distance = little(data, at, 2)
      at = at + 2
      out.copy(distance, extended(token % 16) + 4)
    end
  end
  return out.text()
end

local function lz4_frame(data)
  local flags = data:byte(5)
  local at = 8 + (bits.band(flags, 8) ~= 0 and 8 or 0)
  local out = window()
  while true do
    local size = little(data, at, 4)
    at = at + 4
    if size == 0 then return out.text() end
    local plain = size >= 2 ^ 31
    size = size % 2 ^ 31
    local block = data:sub(at, at + size - 1)
    if plain then out.add(block) else lz4_block(block, out) end
    at = at + size + (bits.band(flags, 16) ~= 0 and 4 or 0)
  end
end

local inflate = {}

local codecs = {
  gzip = inflate, zlib = inflate, snappy = snappy, ["kafka-snappy"] = java_snappy,
  ["lz4-block"] = lz4_block, ["kafka-lz4"] = lz4_frame, ["kafka-lz4-v0"] = lz4_frame,
}

local function open(codec, range)
  if codec == inflate then
    local opened = range:uncompress("decompressed")
    return opened and (opened:len() > 0 and opened:bytes() or ByteArray.new()):tvb("decompressed")
  end
  return ByteArray.new(codec(range:raw()), true):tvb("decompressed")
end

local function opened(s, scope, tree, field, codec, compressed, content)
  local value = compressed(s, scope, tree)
  if not value or value == "" or not tree or not codecs[codec] then return value end
  local ok, tvb = pcall(open, codecs[codec], s.tvb(s.pos - #value, #value))
  if not ok or not tvb then
    tree:add_proto_expert_info(s.problem, "does not decompress as " .. codec)
    return value
  end
  local inner = { tvb = tvb, pos = 0, limit = tvb:len(), context = s.context, depth = s.depth, problem = s.problem,
    bad_checksum = s.bad_checksum }
  local sub = tree:add(field, tvb())
  local read, problem = pcall(content, inner, scope, sub)
  if not read then
    sub:add_proto_expert_info(s.problem, type(problem) == "table" and problem.text or tostring(problem))
  end
  return value
end

local function packed(field, plain, compressed, on, cases, content)
  return function(s, scope, tree)
    local values = {}
    for index, expression in ipairs(on) do
      values[index] = expression(s, scope)
    end
    for _, case in ipairs(cases) do
      local fits = true
      for index, value in ipairs(case[1]) do
        fits = fits and as_number(values[index]) == as_number(value)
      end
      if fits then return opened(s, scope, tree, field, case[2], compressed, content) end
    end
    return plain(s, scope, tree)
  end
end

-- Protobuf. -----------------------------------------------------------------------------------------------------------

local function varint(s, most, signed)
  local low, high, shift, group = 0, 0, 0
  repeat
    if most and shift == 7 * most then fail(s, "a varint of more than " .. most .. " bytes") end
    local byte = take(s, 1):uint()
    group = byte % 128
    if shift < 28 then
      low = low + group * 2 ^ shift
    elseif shift == 28 then
      low = low + group % 16 * 2 ^ 28
      high = math.floor(group / 16)
    elseif shift <= 63 then
      high = high + group * 2 ^ (shift - 32)
    else
      fail(s, "a varint of more than 10 bytes")
    end
    shift = shift + 7
  until byte < 128
  if signed and group >= 64 and shift < 32 then
    low, high = low + 2 ^ 32 - 2 ^ shift, 2 ^ 32 - 1
  elseif signed and group >= 64 and shift < 64 then
    high = high + 2 ^ 32 - 2 ^ (shift - 32)
  end
  return low, high % 2 ^ 32
end

local function shifted(low, high, bits, part)
  local above = 2 ^ (32 - bits)
  return low % above * 2 ^ bits + part, (high * 2 ^ bits + math.floor(low / above)) % 2 ^ 32
end

local function vlq(s, most)
  local low, high, start = 0, 0, s.pos
  repeat
    if s.pos - start == most then fail(s, "a varint of more than " .. most .. " bytes") end
    local byte = take(s, 1):uint()
    low, high = shifted(low, high, 7, byte % 128)
  until byte < 128
  return low, high
end

local function by_first_byte(s, heads, little)
  local first = take(s, 1):uint()
  for _, head in ipairs(heads) do
    if head[1] <= first and first <= head[2] then
      local low, high, rest = first - head[1], 0, head[3] > 1 and take(s, head[3] - 1):bytes()
      for at = 0, head[3] - 2 do
        low, high = shifted(low, high, 8, rest:get_index(little and head[3] - 2 - at or at))
      end
      return low, high
    end
  end
  fail(s, "a first byte that begins no number")
end

local function varint_value(kind, low, high)
  if kind == "bool" then
    local set = low ~= 0 or high ~= 0
    return set, set
  elseif kind == "uint32" then
    return low, low
  elseif kind == "int32" or kind == "enum" then
    local value = low >= 2 ^ 31 and low - 2 ^ 32 or low
    return value, value
  elseif kind == "uint64" then
    return UInt64.new(low, high), high * 2 ^ 32 + low
  elseif kind == "int64" then
    return Int64.new(low, high), (high >= 2 ^ 31 and high - 2 ^ 32 or high) * 2 ^ 32 + low
  end
  local sign, half = low % 2, math.floor(low / 2) + high % 2 * 2 ^ 31
  high = math.floor(high / 2)
  local value = high * 2 ^ 32 + half
  if sign == 1 then value, high, half = -value - 1, 2 ^ 32 - 1 - high, 2 ^ 32 - 1 - half end
  return kind == "sint64" and Int64.new(half, high) or value, value
end

local protobuf_fixed = {
  double = { 8, "le_float" }, float = { 4, "le_float" }, fixed64 = { 8, "le_uint64" }, fixed32 = { 4, "le_uint" },
  sfixed64 = { 8, "le_int64" }, sfixed32 = { 4, "le_int" },
}

local function number_in(field, kind, read)
  return function(s, scope, tree)
    local start = s.pos
    local shown, value = varint_value(kind, read(s))
    if tree then tree:add(field, s.tvb(start, s.pos - start), shown) end
    return value
  end
end

local function varint_number(field, kind, groups, reversed)
  return number_in(field, kind, function(s)
    if reversed then return vlq(s, groups) end
    return varint(s, groups, kind == "int32" or kind == "int64")
  end)
end

local function first_byte_number(field, kind, heads, little)
  return number_in(field, kind, function(s) return by_first_byte(s, heads, little) end)
end

local function protobuf_scalar(s, tree, field, start)
  local fixed = protobuf_fixed[field.kind]
  if fixed then
    local range = take(s, fixed[1])
    if tree then tree:add_le(field.field, range) end
    local value = range[fixed[2]](range)
    return type(value) == "userdata" and value:tonumber() or value
  end
  local before = s.pos
  local shown, value = varint_value(field.kind, varint(s))
  if tree then tree:add(field.field, s.tvb(before, s.pos - before), shown) end
  return value
end

local function protobuf(field, fields)
  return function(s, scope, tree)
    local start, sub, value = s.pos, branch(s, tree, field), {}
    for _, each in pairs(fields) do
      if each.repeated then value[each.name] = { list = true } end
    end
    while s.pos < s.limit do
      local begin = s.pos
      local key = varint(s)
      local each, wire, items = fields[math.floor(key / 8)], key % 8, {}
      local size = wire == 2 and varint(s)
      if size and size > s.limit - s.pos then fail(s, "needs " .. exact(size) .. " bytes, " .. (s.limit - s.pos) .. " available") end
      if size and each and each.node then
        local outer = s.limit
        s.limit = s.pos + size
        s.depth = (s.depth or 0) + 1
        if s.depth > DEEPEST then fail(s, "messages inside of more than " .. DEEPEST .. " others") end
        items[1] = each.node()(s, scope, sub)
        s.depth = s.depth - 1
        s.limit = outer
      elseif size and each and (each.kind == "string" or each.kind == "bytes") then
        items[1] = string_of(s, sub, each.field, take(s, size), each.kind == "string")
      elseif size and each then
        local stop = s.pos + size
        while s.pos < stop do
          items[#items + 1] = protobuf_scalar(s, sub, each, s.pos)
        end
      elseif each and wire ~= 3 and wire ~= 4 then
        items[1] = protobuf_scalar(s, sub, each, begin)
      else
        if wire == 0 then varint(s) elseif wire == 1 then take(s, 8) elseif wire == 5 then take(s, 4)
        elseif size then take(s, size) else fail(s, "wire type " .. wire) end
        if sub then sub:add(s.tvb(begin, s.pos - begin), "unknown field " .. math.floor(key / 8)) end
      end
      for _, item in ipairs(items) do
        if each and each.repeated then
          table.insert(value[each.name], item)
        elseif each then
          value[each.name] = item
          value[each.name .. IS_TEXT] = s.is_text
        end
      end
    end
    close_branch(s, tree, sub, start)
    return value
  end
end

-- Frames of a stream, and which answer belongs to which request. -----------------------------------------------------

local stream_of = Field.new("tcp.stream")

local function at_path(value, path)
  for name in path:gmatch("[^.]+") do
    if type(value) ~= "table" then return nil end
    value = value[name]
  end
  return as_number(value)
end

local function kind_of(heads, s, tvb)
  local place = { tvb = tvb, pos = 0, limit = tvb:len(), context = {} }
  local ok, value = pcall(heads.node, place, nil, nil)
  local parts = {}
  for index, path in ipairs(heads.fields) do
    parts[index] = tostring(ok and at_path(value, path))
  end
  local kind = ok and heads.kinds[table.concat(parts, ",")]
  if not kind then return nil end
  if kind.full then
    place = { tvb = tvb, pos = 0, limit = tvb:len(), context = {} }
    ok, value = pcall(kind.full, place, nil, nil)
    if not ok then return nil end
  end
  if kind.unusual and at_path(value, kind.unusual[1]) == kind.unusual[2] then return nil end
  return kind, value
end

local function pair_of(kind, value)
  local parts = { kind.link }
  for _, path in ipairs(kind.pair) do
    parts[#parts + 1] = tostring(at_path(value, path))
  end
  return table.concat(parts, ":")
end

-- `options` has proto, fields, frame, client, server, pairing, expert fields; see the end of the file.
local function dissect_streams(options)
  local requests, answered = {}, {}
  function options.proto.init()
    requests, answered = {}, {}
  end

  local function described(s, tvb, pinfo, side)
    local heads = options.pairing and options.pairing[side]
    local kind, value
    if heads then kind, value = kind_of(heads, s, tvb) end
    if not kind then return {} end
    local version = type(kind.version) == "string" and at_path(value, kind.version) or kind.version
    local found = { api = kind.api, version = version, node = kind.node }
    if kind.role == "event" then return found end
    local pair = pair_of(kind, value)
    local stream = tostring(stream_of())
    local key = stream .. "/" .. pair
    if kind.role == "request" then
      found.key = pair
      local silent = kind.silent and at_path(value, kind.silent[1]) == kind.silent[2]
      if not pinfo.visited and not silent then
        requests[key] = { number = pinfo.number, time = pinfo.abs_ts, kind = kind, version = version }
      end
      return found
    end
    local place = pinfo.number .. "/" .. key
    if not pinfo.visited and requests[key] then
      answered[place], requests[key] = requests[key], nil
    end
    local request = answered[place]
    if request then
      found.request, found.node = request, kind.node or request.kind.answer
      found.api = kind.api ~= "" and kind.api or request.kind.api
      found.version = version or request.version
      found.context = { api = request.kind.api, version = request.version }
      if kind.context ~= "" then found.context[kind.context] = request.version end
    end
    return found
  end

  local function one(tvb, pinfo, root)
    local side = pinfo.dst_port == pinfo.match_uint and "client" or "server"
    pinfo.cols.protocol = options.title
    local tree = root:add(options.proto, tvb())
    local s = { tvb = tvb, pos = 0, limit = tvb:len(), problem = options.problem, bad_checksum = options.bad_checksum }
    local found = described(s, tvb, pinfo, side)
    s.context = found.context or {}
    if found.api then
      tree:append_text(", " .. found.api .. (found.version and " v" .. found.version or ""))
      pinfo.cols.info = (side == "client" and "→ " or "← ") .. found.api .. (found.version and " v" .. found.version or "")
      tree:add(options.api, found.api):set_generated()
    end
    if found.request then
      tree:add(options.request_in, found.request.number):set_generated()
      tree:add(options.latency, (pinfo.abs_ts - found.request.time) * 1000):set_generated()
    end
    local ok, problem = pcall(found.node or options[side], s, nil, tree)
    if not ok then
      local text = type(problem) == "table" and problem.text .. " at byte " .. problem.position or tostring(problem)
      tree:add_proto_expert_info(options.problem, text)
    else
      rest_of(s, tree, tvb:len(), "behind the layout")
    end
    return tvb:len()
  end

  local function size(tvb, pinfo, offset)
    local number = options.length_reader(tvb(offset + options.length_at, options.length_size))
    local whole = number + options.length_add
    if whole < options.least or whole > options.most then return tvb:len() - offset end
    return whole
  end

  function options.proto.dissector(tvb, pinfo, root)
    if not options.length_reader then return one(tvb, pinfo, root) end
    dissect_tcp_pdus(tvb, root, options.length_at + options.length_size, size, one)
    return tvb:len()
  end
end
