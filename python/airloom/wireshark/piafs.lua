-- PIAFS frames in a capture of airloom: link type 147 (USER0), 80 octets each.
--
--   wireshark -X lua_script:piafs.lua trace.pcapng
--   tshark -X lua_script:piafs.lua -r trace.pcapng -Y piafs
--
-- The order of the fields in the header is airloom's own: the standard's is in no public text.

local piafs = Proto("piafs", "PHS Internet Access Forum Standard")

local KINDS = { [0] = "control", [1] = "DATA", [2] = "DATA, partly filled" }

local number = ProtoField.uint8("piafs.num", "NUM", base.DEC)
local request = ProtoField.uint8("piafs.req", "REQ", base.DEC)
local acknowledged = ProtoField.uint8("piafs.ack", "ACK", base.DEC)
local flag = ProtoField.bool("piafs.ack_flag", "ACK flag")
local kind = ProtoField.uint8("piafs.type", "Type", base.DEC, KINDS)
local length = ProtoField.uint8("piafs.length", "Length", base.DEC)
local data = ProtoField.bytes("piafs.data", "User data")
local check = ProtoField.uint32("piafs.crc", "CRC-32", base.HEX)

piafs.fields = { number, request, acknowledged, flag, kind, length, data, check }

function piafs.dissector(buffer, pinfo, root)
    if buffer:len() ~= 80 then
        return 0
    end
    pinfo.cols.protocol = "PIAFS"
    local tree = root:add(piafs, buffer())
    local header = buffer(0, 3):uint()
    local num, req = bit.rshift(header, 17), bit.band(bit.rshift(header, 10), 127)
    local ack, is_set = bit.band(bit.rshift(header, 3), 127), bit.band(header, 4) ~= 0
    local which = bit.band(header, 3)
    tree:add(number, buffer(0, 1), num)
    tree:add(request, buffer(0, 2), req)
    tree:add(acknowledged, buffer(1, 2), ack)
    tree:add(flag, buffer(2, 1), is_set)
    tree:add(kind, buffer(2, 1), which)
    local from, len = 3, 73
    if which == 2 then
        tree:add(length, buffer(3, 1))
        from, len = 4, math.min(buffer(3, 1):uint(), 72)
    end
    if num ~= 0 and len > 0 then
        tree:add(data, buffer(from, len))
    end
    tree:add(check, buffer(76, 4))
    pinfo.cols.info = string.format("NUM %03d REQ %03d %s ACK %d %03d", num, req, KINDS[which] or "?", is_set and 1 or 0, ack)
    return 80
end

DissectorTable.get("wtap_encap"):add(wtap.USER0, piafs)
