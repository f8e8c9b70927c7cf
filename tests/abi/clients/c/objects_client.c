/* SPDX-License-Identifier: Apache-2.0
 * Key-value pairs, attributes and devices: the objects that need no model. */
#include "abi_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say_pairs(struct client *c, const char *name, const OrtKeyValuePairs *pairs)
{
    const char *const *keys = NULL, *const *values = NULL;
    size_t count = 0, used = 0;
    char text[1024] = "";
    c->api->GetKeyValuePairs(pairs, &keys, &values, &count);
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %s=%s", keys[i], values[i]);
    say(name, "%zu:%s", count, text);
}

static void check_pairs(struct client *c)
{
    OrtKeyValuePairs *pairs = NULL;
    c->api->CreateKeyValuePairs(&pairs);
    say_pairs(c, "pairs.empty", pairs);
    c->api->AddKeyValuePair(pairs, "zebra", "1");
    c->api->AddKeyValuePair(pairs, "ant", "2");
    c->api->AddKeyValuePair(pairs, "mouse", "");
    say_pairs(c, "pairs.three", pairs);
    const char *absent = c->api->GetKeyValue(pairs, "absent");
    say("pairs.get", "%s %s", c->api->GetKeyValue(pairs, "ant"), absent ? absent : "NULL");
    c->api->AddKeyValuePair(pairs, "zebra", "3");
    say_pairs(c, "pairs.again", pairs);
    c->api->AddKeyValuePair(pairs, "", "4");
    say_pairs(c, "pairs.no_key", pairs);
    c->api->RemoveKeyValuePair(pairs, "mouse");
    c->api->RemoveKeyValuePair(pairs, "absent");
    say_pairs(c, "pairs.removed", pairs);
    c->api->AddKeyValuePair(pairs, "bee", "5");
    say_pairs(c, "pairs.added", pairs);
    c->api->ReleaseKeyValuePairs(pairs);
    c->api->ReleaseKeyValuePairs(NULL);
}

/* What ReadOpAttr says of an attribute, with room for its data, with too little, and as
 * another type. */
static void say_read(struct client *c, const char *name, const OrtOpAttr *attr, OrtOpAttrType type)
{
    unsigned char data[256];
    char below[128];
    size_t size = 0, again = 0;
    OrtOpAttrType found = ORT_OP_ATTR_UNDEFINED;
    const char *own = NULL;
    good(c, name, c->api->OpAttr_GetName(attr, &own));
    good(c, name, c->api->OpAttr_GetType(attr, &found));
    say(name, "%s type %d", own ? own : "NULL", (int)found);
    snprintf(below, sizeof below, "%s.size", name);
    say_status(c, below, c->api->ReadOpAttr(attr, type, NULL, 0, &size));
    snprintf(below, sizeof below, "%s.read", name);
    if (good(c, below, c->api->ReadOpAttr(attr, type, data, sizeof data, &again))) {
        char text[600] = "";
        for (size_t i = 0; i < again && i < sizeof data; i++)
            snprintf(text + 2 * i, 3, "%02x", data[i]);
        say(below, "%zu %zu %s", size, again, text);
    }
    snprintf(below, sizeof below, "%s.short", name);
    if (size > 0) say_status(c, below, c->api->ReadOpAttr(attr, type, data, 3, &again));
    snprintf(below, sizeof below, "%s.other", name);
    OrtOpAttrType other = type == ORT_OP_ATTR_INT ? ORT_OP_ATTR_FLOATS : ORT_OP_ATTR_INT;
    say_status(c, below, c->api->ReadOpAttr(attr, other, data, sizeof data, &again));
}

static void check_attributes(struct client *c)
{
    const int64_t i = -3, is[] = {1, -2, 3};
    const float f = 1.5f, fs[] = {0.5f, -2};
    const char *ss[] = {"one", "", "three"};
    const struct {
        const char *name;
        const void *data;
        int count;
        OrtOpAttrType type;
    } rows[] = {
        {"int", &i, 1, ORT_OP_ATTR_INT},           {"ints", is, 3, ORT_OP_ATTR_INTS},
        {"float", &f, 1, ORT_OP_ATTR_FLOAT},       {"floats", fs, 2, ORT_OP_ATTR_FLOATS},
        {"string", "text", 4, ORT_OP_ATTR_STRING}, {"strings", ss, 3, ORT_OP_ATTR_STRINGS},
        {"no_ints", is, 0, ORT_OP_ATTR_INTS},      {"no_floats", fs, 0, ORT_OP_ATTR_FLOATS},
    };
    for (size_t at = 0; at < sizeof rows / sizeof rows[0]; at++) {
        OrtOpAttr *attr = NULL;
        char name[64];
        snprintf(name, sizeof name, "attr.%s", rows[at].name);
        if (!good(c, name,
                  c->api->CreateOpAttr(rows[at].name, rows[at].data, rows[at].count, rows[at].type,
                                       &attr)))
            continue;
        say_read(c, name, attr, rows[at].type);
        c->api->ReleaseOpAttr(attr);
    }
    OrtOpAttr *none = NULL;
    say_status(c, "attr.undefined", c->api->CreateOpAttr("u", &i, 1, ORT_OP_ATTR_UNDEFINED, &none));
    say_status(c, "attr.graph", c->api->CreateOpAttr("g", &i, 1, ORT_OP_ATTR_GRAPH, &none));
}

static void check_tensor_attribute(struct client *c)
{
    float data[] = {1, 2, 3, 4};
    OrtValue *tensor = float_tensor(c, data, 2, 2), *back = NULL;
    OrtOpAttr *attr = NULL;
    if (!good(c, "attr.tensor",
              c->api->CreateOpAttr("value", tensor, 1, ORT_OP_ATTR_TENSOR, &attr)))
        return;
    OrtOpAttrType type = ORT_OP_ATTR_UNDEFINED;
    good(c, "attr.tensor", c->api->OpAttr_GetType(attr, &type));
    say("attr.tensor", "type %d", (int)type);
    if (good(c, "attr.tensor.value", c->api->OpAttr_GetTensorAttributeAsOrtValue(attr, &back)))
        say_value(c, "attr.tensor.value", back);
    c->api->ReleaseValue(back);
    c->api->ReleaseValue(tensor);
    c->api->ReleaseOpAttr(attr);
    int64_t i = 1;
    if (!good(c, "attr.not_tensor", c->api->CreateOpAttr("i", &i, 1, ORT_OP_ATTR_INT, &attr)))
        return;
    say_status(c, "attr.not_tensor", c->api->OpAttr_GetTensorAttributeAsOrtValue(attr, &back));
    c->api->ReleaseOpAttr(attr);
}

static void check_devices(struct client *c)
{
    const OrtEpDevice *const *devices = NULL;
    const OrtHardwareDevice *hardware[8] = {NULL};
    size_t count = 0, others = 0;
    if (good(c, "devices", c->api->GetNumHardwareDevices(c->env, &others)) && others <= 8 &&
        good(c, "devices", c->api->GetHardwareDevices(c->env, hardware, others)) && others)
        say("devices.hardware", "%zu, first of type %d", others,
            (int)c->api->HardwareDevice_Type(hardware[0]));
    say_status(c, "devices.hardware.few", c->api->GetHardwareDevices(c->env, hardware, others - 1));
    if (!good(c, "devices", c->api->GetEpDevices(c->env, &devices, &count))) return;
    say("devices", "%zu", count);
    for (size_t i = 0; i < count; i++) {
        const OrtEpDevice *device = devices[i];
        const OrtHardwareDevice *of = c->api->EpDevice_Device(device);
        say("devices.ep", "%s", c->api->EpDevice_EpName(device));
        say("devices.vendor", "%s", c->api->EpDevice_EpVendor(device));
        say_pairs(c, "devices.metadata", c->api->EpDevice_EpMetadata(device));
        say_pairs(c, "devices.options", c->api->EpDevice_EpOptions(device));
        say("devices.type", "%d", (int)c->api->HardwareDevice_Type(of));
        say("devices.maker", "%s", c->api->HardwareDevice_Vendor(of));
        say("devices.ids", "%x %x", c->api->HardwareDevice_VendorId(of),
            c->api->HardwareDevice_DeviceId(of));
        say_pairs(c, "devices.hardware.metadata", c->api->HardwareDevice_Metadata(of));
        const OrtMemoryInfo *info =
            c->api->EpDevice_MemoryInfo(device, OrtDeviceMemoryType_DEFAULT);
        say("devices.memory", "%s", info ? "there" : "NULL");
        info = c->api->EpDevice_MemoryInfo(device, OrtDeviceMemoryType_HOST_ACCESSIBLE);
        say("devices.memory.host", "%s", info ? "there" : "NULL");
    }
    OrtDeviceEpIncompatibilityDetails *details = NULL;
    if (good(c, "devices.fit",
             c->api->GetHardwareDeviceEpIncompatibilityDetails(c->env, "CPUExecutionProvider",
                                                               hardware[0], &details))) {
        uint32_t reasons = 7;
        int32_t code = 7;
        const char *notes = "unset";
        if (details) {
            good(c, "devices.fit",
                 c->api->DeviceEpIncompatibilityDetails_GetReasonsBitmask(details, &reasons));
            good(c, "devices.fit",
                 c->api->DeviceEpIncompatibilityDetails_GetNotes(details, &notes));
            good(c, "devices.fit",
                 c->api->DeviceEpIncompatibilityDetails_GetErrorCode(details, &code));
        }
        say("devices.fit", "%s %u %d %s", details ? "details" : "NULL", reasons, (int)code,
            notes ? notes : "NULL");
        c->api->ReleaseDeviceEpIncompatibilityDetails(details);
    }
    say_status(c, "devices.fit.no_provider",
               c->api->GetHardwareDeviceEpIncompatibilityDetails(c->env, "NoProvider", hardware[0],
                                                                 &details));
    OrtCompiledModelCompatibility fits = OrtCompiledModelCompatibility_EP_UNSUPPORTED;
    if (good(c, "devices.compiled",
             c->api->GetModelCompatibilityForEpDevices(devices, count, "any", &fits)))
        say("devices.compiled", "%d", (int)fits);
    OrtSyncStream *stream = NULL;
    say_status(c, "devices.stream", c->api->CreateSyncStreamForEpDevice(devices[0], NULL, &stream));
}

static void check_selection(struct client *c)
{
    const OrtEpDevice *const *devices = NULL;
    size_t count = 0;
    OrtSessionOptions *options = NULL;
    if (!good(c, "select", c->api->GetEpDevices(c->env, &devices, &count)) ||
        !good(c, "select", c->api->CreateSessionOptions(&options)))
        return;
    say_status(c, "select.none",
               c->api->SessionOptionsAppendExecutionProvider_V2(options, c->env, devices, 0, NULL,
                                                                NULL, 0));
    say_status(c, "select.cpu",
               c->api->SessionOptionsAppendExecutionProvider_V2(options, c->env, devices, 1, NULL,
                                                                NULL, 0));
    const OrtEpDevice *twice[2] = {devices[0], devices[0]};
    say_status(
        c, "select.twice",
        c->api->SessionOptionsAppendExecutionProvider_V2(options, c->env, twice, 2, NULL, NULL, 0));
    say_status(c, "select.policy",
               c->api->SessionOptionsSetEpSelectionPolicy(
                   options, OrtExecutionProviderDevicePolicy_MAX_PERFORMANCE));
    say_status(c, "select.library",
               c->api->RegisterExecutionProviderLibrary(c->env, "mine", "no_such_library.so"));
    say_status(c, "select.unregister", c->api->UnregisterExecutionProviderLibrary(c->env, "mine"));
    c->api->ReleaseSessionOptions(options);
}

int main(int argc, char **argv)
{
    struct client c;
    if (argc < 3) return 2;
    client_open(&c, argv[1], argv[2]);
    check_pairs(&c);
    check_attributes(&c);
    check_tensor_attribute(&c);
    check_devices(&c);
    check_selection(&c);
    client_close(&c);
    say("end", "reached");
    return 0;
}
