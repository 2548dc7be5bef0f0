import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BinaryNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Scanner;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

/**
 * Writes random valid messages as Kafka's own generated classes encode them, one JSON object a line on standard output:
 * name, version, style, frame (base64 of header and body), header, value (as Kafka's JSON converter reads it back), with the unknown
 * tagged fields of each struct under "unknownTags".
 *
 * What is valid in a version is taken from Kafka's schemas, never from the tables under test.
 *
 * Arguments: a seed, how many rounds of styles, and API keys: then it writes the responses of these, and else all of the layout table.
 *
 * With the argument "read" alone it reads responses instead: lines of name, version and frame (base64) on standard input; the value of
 * each as above, or the error, goes to standard output.
 */
public final class Oracle {
    private static final Set<Integer> TABLE_KEYS =
        Set.of(8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 25, 26, 28, 42, 47, 68, 69, 76, 77, 88, 89);
    private static final String[] EMBEDDED = {"ConsumerProtocolSubscription", "ConsumerProtocolAssignment"};
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final String[] WORDS = {"", "a", "orders", "group-7", "größe", "消費者", "😀-1", "\u0000", "consumer-1-0b7f"};
    private static final long[] NUMBERS = {0, 1, -1, 2, 7, 127, 128, -128, 255, 32767, -32768, 65535, Integer.MAX_VALUE,
        Integer.MIN_VALUE, Long.MAX_VALUE, Long.MIN_VALUE};

    enum Style { MINIMAL, RANDOM, LARGE, TAGS }

    private final Random random;
    private final Set<Integer> keys;
    private boolean withTagged = true;

    private Oracle(long seed, Set<Integer> keys) {
        this.random = new Random(seed);
        this.keys = keys;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("read")) {
            readAll();
            return;
        }
        long seed = Long.parseLong(arguments[0]);
        int rounds = Integer.parseInt(arguments[1]);
        Set<Integer> keys = arguments.length < 3 ? TABLE_KEYS
            : Arrays.stream(arguments[2].split(",")).map(Integer::valueOf).collect(Collectors.toSet());
        Oracle oracle = new Oracle(seed, keys);
        for (int round = 0; round < rounds; round++) {
            for (Style style : Style.values()) {
                if (style != Style.MINIMAL || round == 0) {
                    oracle.writeAll(style);
                }
            }
        }
        System.out.flush();
    }

    private void writeAll(Style style) throws Exception {
        for (ApiMessageType api : ApiMessageType.values()) {
            if (keys.contains((int) api.apiKey())) {
                for (short version = api.lowestSupportedVersion(); version <= highestVersion(api); version++) {
                    boolean flexible = api.requestHeaderVersion(version) >= 2;
                    if (keys == TABLE_KEYS) {
                        writeRequest(api, version, style, flexible);
                    }
                    writeResponse(api, version, style, flexible);
                }
            }
        }
        for (String name : keys == TABLE_KEYS ? EMBEDDED : new String[0]) {
            Schema[] schemas = (Schema[]) Class.forName(dataClass(name)).getField("SCHEMAS").get(null);
            for (short version = 0; version < schemas.length; version++) {
                Message body = build(dataClass(name), schemas[version], version, style);
                byte[] raw = bytes(body, version);
                ByteBuffer frame = ByteBuffer.allocate(2 + raw.length).putShort(version).put(raw);
                print(name, version, style, frame.array(), JSON.objectNode(), readBack(dataClass(name), body, raw, version, false));
            }
        }
    }

    private void writeRequest(ApiMessageType api, short version, Style style, boolean flexible) throws Exception {
        String type = dataClass(api.name + "RequestData");
        Message body = build(type, api.requestSchemas()[version], version, style);
        RequestHeaderData header = new RequestHeaderData()
            .setRequestApiKey(api.apiKey())
            .setRequestApiVersion(version)
            .setCorrelationId(random.nextInt())
            .setClientId(style == Style.MINIMAL ? null : word(style));
        if (style == Style.TAGS && flexible) {
            addTags(header);
            addTags(body);
        }
        short headerVersion = api.requestHeaderVersion(version);
        ObjectNode told = JSON.objectNode();
        told.put("correlationId", header.correlationId());
        told.put("clientId", header.clientId());
        putTags(header, told);
        byte[] raw = bytes(body, version);
        print(api.name + "Request", version, style, join(bytes(header, headerVersion), raw), told,
            readBack(type, body, raw, version, flexible));
    }

    private void writeResponse(ApiMessageType api, short version, Style style, boolean flexible) throws Exception {
        String type = dataClass(api.name + "ResponseData");
        Message body = buildWritable(type, api.responseSchemas()[version], version, style);
        ResponseHeaderData header = new ResponseHeaderData().setCorrelationId(random.nextInt());
        short headerVersion = api.responseHeaderVersion(version);
        if (style == Style.TAGS && flexible) {
            if (headerVersion > 0) {
                addTags(header);
            }
            addTags(body);
            if (!isWritable(body, version)) {
                body = buildWritable(type, api.responseSchemas()[version], version, style);
                addOwnTags(body);
            }
        }
        ObjectNode told = JSON.objectNode();
        told.put("correlationId", header.correlationId());
        putTags(header, told);
        byte[] raw = bytes(body, version);
        print(api.name + "Response", version, style, join(bytes(header, headerVersion), raw), told,
            readBack(type, body, raw, version, flexible));
    }

    private static void print(String name, short version, Style style, byte[] frame, JsonNode header, JsonNode value) {
        ObjectNode line = JSON.objectNode();
        line.put("name", name);
        line.put("version", version);
        line.put("style", style.name().toLowerCase());
        line.put("frame", Base64.getEncoder().encodeToString(frame));
        line.set("header", header);
        line.set("value", value);
        byte[] text = (line + "\n").getBytes(StandardCharsets.UTF_8);
        System.out.write(text, 0, text.length);
    }

    private static String dataClass(String name) {
        return "org.apache.kafka.common.message." + name;
    }

    // Random values --------------------------------------------------------------------------------------------------------------

    private Message build(String type, Schema schema, short version, Style style) throws Exception {
        JsonNode node = struct(schema, style, 0);
        return (Message) Class.forName(type + "JsonConverter").getMethod("read", JsonNode.class, short.class).invoke(null, node, version);
    }

    /** Schemas name tagged fields in flexible versions that do not have them yet, and writing them fails. */
    private Message buildWritable(String type, Schema schema, short version, Style style) throws Exception {
        Message body = build(type, schema, version, style);
        if (!isWritable(body, version)) {
            withTagged = false;
            body = build(type, schema, version, style);
            withTagged = true;
        }
        return body;
    }

    /** Not when it, or a tag in it, has a field that the version lacks. */
    private static boolean isWritable(Message body, short version) {
        try {
            bytes(body, version);
            return true;
        } catch (UnsupportedVersionException error) {
            return false;
        }
    }

    /** Not public before Kafka 4. */
    @SuppressWarnings("unchecked")
    private static Map<Integer, org.apache.kafka.common.protocol.types.Field> tagged(TaggedFields section) throws Exception {
        Field fields = TaggedFields.class.getDeclaredField("fields");
        fields.setAccessible(true);
        return (Map<Integer, org.apache.kafka.common.protocol.types.Field>) fields.get(section);
    }

    private ObjectNode struct(Schema schema, Style style, int depth) throws Exception {
        ObjectNode node = JSON.objectNode();
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields) {
                for (org.apache.kafka.common.protocol.types.Field field : tagged((TaggedFields) bound.def.type).values()) {
                    if (withTagged && style != Style.MINIMAL && random.nextBoolean()) {
                        node.set(camel(field.name), value(field.type, style, depth + 1));
                    }
                }
            } else {
                node.set(camel(bound.def.name), value(bound.def.type, style, depth + 1));
            }
        }
        return node;
    }

    private JsonNode value(Type type, Style style, int depth) throws Exception {
        if (type.isNullable() && (style == Style.MINIMAL || random.nextInt(4) == 0)) {
            return NullNode.instance;
        }
        if (type.isArray()) {
            ArrayNode array = JSON.arrayNode();
            int count = style == Style.MINIMAL ? 0 : style == Style.LARGE && depth <= 3 ? 130 : random.nextInt(3);
            for (int index = 0; index < count; index++) {
                Style inner = index < 2 || style != Style.LARGE ? style : Style.MINIMAL;
                array.add(value(type.arrayElementType().get(), inner, depth + 1));
            }
            return array;
        }
        if (type instanceof Schema) {
            return struct((Schema) type, style, depth);
        }
        String name = type.toString();
        long number = style == Style.MINIMAL ? 0 : random.nextInt(3) == 0 ? random.nextLong() : NUMBERS[random.nextInt(NUMBERS.length)];
        switch (name) {
            case "BOOLEAN": return JSON.booleanNode(number % 2 != 0);
            case "INT8": return JSON.numberNode((byte) number);
            case "INT16": return JSON.numberNode((short) number);
            case "UINT16": return JSON.numberNode((int) (number & 0xffff));
            case "INT32": return JSON.numberNode((int) number);
            case "INT64": return JSON.numberNode(number);
            case "UUID": return JSON.textNode((style == Style.MINIMAL ? Uuid.ZERO_UUID : new Uuid(random.nextLong(), number)).toString());
            default:
                if (name.endsWith("STRING")) {
                    return JSON.textNode(style == Style.MINIMAL ? "" : word(style));
                }
                if (name.endsWith("BYTES") || name.endsWith("RECORDS")) {
                    return BinaryNode.valueOf(style == Style.MINIMAL ? new byte[0] : word(style).getBytes(StandardCharsets.UTF_16BE));
                }
                throw new IllegalStateException("no random value for " + name);
        }
    }

    private String word(Style style) {
        String word = WORDS[random.nextInt(WORDS.length)];
        return style == Style.LARGE ? (word + "-x").repeat(64 + random.nextInt(40)) : word;
    }

    private static String camel(String snake) {
        StringBuilder out = new StringBuilder();
        for (String part : snake.split("_")) {
            out.append(out.length() == 0 ? part : Character.toUpperCase(part.charAt(0)) + part.substring(1));
        }
        return out.toString();
    }

    // Unknown tagged fields ------------------------------------------------------------------------------------------------------

    private void addTags(Message message) throws Exception {
        addOwnTags(message);
        for (Field field : message.getClass().getDeclaredFields()) {
            field.setAccessible(true);
            Object held = java.lang.reflect.Modifier.isStatic(field.getModifiers()) ? null : field.get(message);
            if (held instanceof Message) {
                addTags((Message) held);
            } else if (held instanceof Collection) {
                for (Object item : (Collection<?>) held) {
                    if (item instanceof Message) {
                        addTags((Message) item);
                    }
                }
            }
        }
    }

    private void addOwnTags(Message message) {
        int tag = 20;
        for (int left = random.nextInt(3); left > 0; left--) {
            tag += 1 + random.nextInt(300);
            message.unknownTaggedFields().add(new RawTaggedField(tag, word(Style.RANDOM).getBytes(StandardCharsets.UTF_8)));
        }
    }

    private static void putTags(Message message, ObjectNode node) {
        List<RawTaggedField> tags = message.unknownTaggedFields();
        if (!tags.isEmpty()) {
            ObjectNode told = node.putObject("unknownTags");
            for (RawTaggedField tag : tags) {
                told.put(Integer.toString(tag.tag()), tag.data());
            }
        }
    }

    /** The value as Kafka reads it from the bytes, so that what is expected owes nothing to what was meant. */
    /** The newest version; before Kafka 3.3 the method takes no argument. */
    private static short highestVersion(ApiMessageType api) throws Exception {
        try {
            return (short) ApiMessageType.class.getMethod("highestSupportedVersion", boolean.class).invoke(api, true);
        } catch (NoSuchMethodException before) {
            return (short) ApiMessageType.class.getMethod("highestSupportedVersion").invoke(api);
        }
    }

    private static JsonNode readBack(String type, Message written, byte[] raw, short version, boolean flexible) throws Exception {
        Message read = (Message) Class.forName(type).getConstructor().newInstance();
        ByteBuffer buffer = ByteBuffer.wrap(raw);
        read.read(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining() || !read.equals(written)) {
            throw new IllegalStateException(type + " v" + version + " does not read what it wrote");
        }
        Class<?> converter = Class.forName(type + "JsonConverter");
        JsonNode node = (JsonNode) converter.getMethod("write", Class.forName(type), short.class).invoke(null, read, version);
        if (flexible) {
            tellTags(read, (ObjectNode) node);
        }
        return node;
    }

    private static void tellTags(Message message, ObjectNode node) throws Exception {
        List<Map.Entry<String, JsonNode>> inner = new ArrayList<>();
        node.fields().forEachRemaining(inner::add);
        for (Map.Entry<String, JsonNode> entry : inner) {
            if (entry.getValue() instanceof ObjectNode) {
                tellTags((Message) message.getClass().getMethod(entry.getKey()).invoke(message), (ObjectNode) entry.getValue());
            } else if (entry.getValue() instanceof ArrayNode && entry.getValue().size() > 0 && entry.getValue().get(0) instanceof ObjectNode) {
                Iterator<?> items = ((Iterable<?>) message.getClass().getMethod(entry.getKey()).invoke(message)).iterator();
                for (JsonNode item : entry.getValue()) {
                    tellTags((Message) items.next(), (ObjectNode) item);
                }
            }
        }
        putTags(message, node);
    }

    private static void readAll() throws Exception {
        Scanner lines = new Scanner(System.in, StandardCharsets.UTF_8);
        while (lines.hasNext()) {
            ApiMessageType api = ApiMessageType.valueOf(lines.next());
            short version = lines.nextShort();
            ByteBuffer frame = ByteBuffer.wrap(Base64.getDecoder().decode(lines.next()));
            String text;
            try {
                text = readResponse(api, version, frame).toString();
            } catch (RuntimeException error) {
                text = JSON.objectNode().put("error", error.toString()).toString();
            }
            System.out.println(text);
        }
    }

    private static JsonNode readResponse(ApiMessageType api, short version, ByteBuffer frame) throws Exception {
        short headerVersion = api.responseHeaderVersion(version);
        ResponseHeaderData header = new ResponseHeaderData();
        header.read(new ByteBufferAccessor(frame), headerVersion);
        String type = dataClass(api.name + "ResponseData");
        Message body = (Message) Class.forName(type).getConstructor().newInstance();
        body.read(new ByteBufferAccessor(frame), version);
        if (frame.hasRemaining()) {
            throw new IllegalStateException(frame.remaining() + " bytes are left");
        }
        Method write = Class.forName(type + "JsonConverter").getMethod("write", Class.forName(type), short.class);
        ObjectNode node = (ObjectNode) write.invoke(null, body, version);
        if (api.requestHeaderVersion(version) >= 2) {
            tellTags(body, node);
        }
        node.put("correlationId", header.correlationId());
        return node;
    }

    private static byte[] bytes(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }

    private static byte[] join(byte[] header, byte[] body) {
        return ByteBuffer.allocate(header.length + body.length).put(header).put(body).array();
    }
}
