package doors

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/fairlead/fairlead/gen/openapi"
)

// route is a method on a path of the specification, and the RPC behind it.
type route struct {
	door
	method, path string
	query        []string // the names of parameters
	needed       []string // those that must be there
	headers      []string
	contentTypes []string
}

// behind are the RPCs behind operations that have another name.
var behind = map[string]string{
	"FileService_BeginUpload":    "FileService_CreateFile",
	"FileService_LookUpload":     "FileService_GetFile",
	"FileService_ContinueUpload": "FileService_AppendFile",
	"FileService_EndUpload":      "FileService_DeleteFile",
}

// headers are values of headers that a path needs.
var headers = map[string]string{"Tus-Resumable": "1.0.0", "Upload-Offset": "0", "Upload-Length": "3"}

func (r route) name() string { return r.method + " " + r.path }

// request is an HTTP request.
type request struct {
	method, path, body, contentType string
	headers                         []string
	follows                         bool // the answer may not end
}

// routes reads the specification, which has every route, and finds the RPC of each.
func routes(t *testing.T, all []door) (found []route) {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string
			Parameters  []struct {
				Name, In string
				Required bool
			}
			RequestBody struct{ Content map[string]any }
		}
	}
	if err := json.Unmarshal(openapi.JSON, &doc); err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths {
		for method, op := range item {
			r := route{method: strings.ToUpper(method), path: path}
			name := cmp.Or(behind[op.OperationID], op.OperationID)
			i := slices.IndexFunc(all, func(d door) bool {
				return !d.internal() && strings.Replace(d.short(), ".", "_", 1) == name
			})
			if i < 0 {
				t.Errorf("%s: the operation %q is not an RPC; write into `behind` which one decides who may come in", r.name(), op.OperationID)
				continue
			}
			r.door = all[i]
			for _, p := range op.Parameters {
				switch {
				case p.In == "query" && p.Required:
					r.needed = append(r.needed, p.Name)
					fallthrough
				case p.In == "query":
					r.query = append(r.query, p.Name)
				case p.In == "header" && headers[p.Name] != "":
					r.headers = append(r.headers, p.Name)
				}
			}
			for typ := range op.RequestBody.Content {
				r.contentTypes = append(r.contentTypes, typ)
			}
			slices.Sort(r.contentTypes)
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b route) int { return strings.Compare(a.name(), b.name()) })
	return found
}

// kind returns the kind of resource that a request must name, or "".
func (r route) kind() string {
	rule, _ := proto.GetExtension(r.rpc.Options(), annotations.E_Http).(*annotations.HttpRule)
	if !strings.Contains(r.path, "{") && rule == nil {
		return "" // what the RPC needs is made by the gateway
	}
	return r.door.kind()
}

// bodies of files.
var bodies = map[string]string{
	"*/*":                             "# A",
	"application/offset+octet-stream": "# A",
	form:                              "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.md\"\r\n\r\n# A\r\n--x--\r\n",
	"application/x-tar":               strings.Repeat("\x00", 1024), // an empty archive
}

const form = "multipart/form-data"

// request returns a request that names the resources, made from one over gRPC.
func (r route) request(w writer) request {
	w.t.Helper()
	req := request{method: r.method, headers: r.headers, follows: r.rpc.IsStreamingServer() && (!r.reads() || r.follows())}
	m := w.request()
	query := url.Values{}
	for i := range r.rpc.Input().Fields().Len() {
		f := r.rpc.Input().Fields().Get(i)
		if name := string(f.Name()); slices.Contains(r.query, name) && m.ProtoReflect().Has(f) && f.Kind() != protoreflect.MessageKind && !f.IsList() {
			query.Set(name, text(f, m.ProtoReflect().Get(f)))
		}
	}
	for _, name := range r.needed {
		if !query.Has(name) {
			query.Set(name, w.values[name])
		}
	}
	req.path = r.pathOf(w)
	if len(query) > 0 {
		req.path += "?" + query.Encode()
	}
	if len(r.contentTypes) == 0 {
		return req
	}
	req.contentType = r.contentTypes[0]
	for typ, body := range bodies {
		if slices.Contains(r.contentTypes, typ) {
			req.contentType, req.body = strings.NewReplacer("*/*", "application/octet-stream", form, form+"; boundary=x").Replace(typ), body
			return req
		}
	}
	req.body = r.json(w.t, m)
	return req
}

// text returns a scalar as in a query.
func text(f protoreflect.FieldDescriptor, v protoreflect.Value) string {
	if f.Kind() == protoreflect.EnumKind {
		return string(f.Enum().Values().ByNumber(v.Enum()).Name())
	}
	return fmt.Sprint(v.Interface())
}

// pathOf returns the path with the names of resources.
func (r route) pathOf(w writer) string {
	w.t.Helper()
	path := strings.TrimPrefix(r.path, "/v1/")
	end := strings.LastIndexByte(path, '}') + 1
	if end == 0 {
		return r.path
	}
	parts := strings.Split(path[:end], "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "{") {
			parts[i] = "*"
		}
	}
	return "/v1/" + w.resource(strings.Join(parts, "/")) + path[end:]
}

// json returns the body of a request.
func (r route) json(t *testing.T, m proto.Message) string {
	t.Helper()
	rule, _ := proto.GetExtension(r.rpc.Options(), annotations.E_Http).(*annotations.HttpRule)
	inner := m.ProtoReflect()
	if body := rule.GetBody(); body != "*" && body != "" {
		f := inner.Descriptor().Fields().ByName(protoreflect.Name(body))
		inner = inner.Get(f).Message()
	} else {
		inner = proto.Clone(m).ProtoReflect()
		for _, name := range []protoreflect.Name{"name", "parent"} {
			if f := inner.Descriptor().Fields().ByName(name); f != nil && strings.Contains(r.path, "{") {
				inner.Clear(f)
			}
		}
	}
	b, err := protojson.Marshal(inner.Interface())
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}
