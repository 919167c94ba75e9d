// SPDX-License-Identifier: Apache-2.0

// grpcgo talks to a controller as any program with grpc-go would: it knows no file of the project, and learns services
// and messages from the server's reflection. One check a run: grpcgo ADDRESS CHECK [ARGUMENT]. SPUR_JWT is the proof.
// It ends with 0, or says what was wrong and ends with 1. test_grpcgo.py runs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

const ours = "spur.v1."

// client is one connection, with what reflection said of it.
type client struct {
	conn  *grpc.ClientConn
	files files
}

func (c *client) context(timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	if jwt := os.Getenv("SPUR_JWT"); jwt != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+jwt)
	}
	return ctx, cancel
}

func (c *client) method(service, name string) (protoreflect.MethodDescriptor, error) {
	d, err := c.files.find(ours + service)
	if err != nil {
		return nil, err
	}
	m := d.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(name))
	if m == nil {
		return nil, fmt.Errorf("%s has no method %s", service, name)
	}
	return m, nil
}

func (c *client) call(ctx context.Context, m protoreflect.MethodDescriptor, request *dynamicpb.Message, o ...grpc.CallOption) (*dynamicpb.Message, error) {
	reply := dynamicpb.NewMessage(m.Output())
	path := fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())
	return reply, c.conn.Invoke(ctx, path, request, reply, o...)
}

func set(m *dynamicpb.Message, name string, value interface{}) {
	m.Set(m.Descriptor().Fields().ByName(protoreflect.Name(name)), protoreflect.ValueOf(value))
}

// submission is a held job's, whose script is n bytes long.
func submission(m protoreflect.MethodDescriptor, n int) *dynamicpb.Message {
	script := "#!/bin/sh\n"
	script += strings.Repeat("#", n-len(script))
	request := dynamicpb.NewMessage(m.Input())
	set(request, "token", []byte(fmt.Sprintf("%016x", time.Now().UnixNano())))
	set(request, "script", []byte(script))
	set(request, "env", []byte("A=1\x00"))
	spec := dynamicpb.NewMessage(m.Input().Fields().ByName("spec").Message())
	set(spec, "name", "grpc-go")
	set(spec, "hold", true)
	set(spec, "work_dir", "/tmp")
	request.Set(m.Input().Fields().ByName("spec"), protoreflect.ValueOfMessage(spec))
	return request
}

func (c *client) submit(n int, o ...grpc.CallOption) (uint32, error) {
	m, err := c.method("Controller", "Submit")
	if err != nil {
		return 0, err
	}
	ctx, cancel := c.context(20 * time.Second)
	defer cancel()
	reply, err := c.call(ctx, m, submission(m, n), o...)
	if err != nil {
		return 0, err
	}
	return uint32(reply.Get(m.Output().Fields().ByName("job_id")).Uint()), nil
}

func want(code codes.Code, err error) error {
	if status.Code(err) != code {
		return fmt.Errorf("%v was expected, not: %v", code, err)
	}
	return nil
}

// methods calls every method with an empty request. What comes is a reply or a refusal that names what is missing.
func methods(c *client, _ string) error {
	n := 0
	for _, name := range c.files.services {
		if !strings.HasPrefix(name, ours) {
			continue
		}
		d, err := c.files.find(name)
		if err != nil {
			return err
		}
		list := d.(protoreflect.ServiceDescriptor).Methods()
		for i := 0; i < list.Len(); i++ {
			m := list.Get(i)
			if m.Name() == "Shutdown" { // the others want to be asked too; scontrol shutdown has tests of its own
				continue
			}
			ctx, cancel := c.context(10 * time.Second)
			_, err := c.call(ctx, m, dynamicpb.NewMessage(m.Input()))
			cancel()
			fmt.Printf("%s %v\n", m.FullName(), status.Code(err))
			switch status.Code(err) {
			case codes.Unknown, codes.Internal, codes.Unavailable, codes.DeadlineExceeded:
				return fmt.Errorf("%s: %v", m.FullName(), err)
			case codes.OK:
			default:
				if status.Convert(err).Message() == "" {
					return fmt.Errorf("%s is refused without a word: %v", m.FullName(), err)
				}
			}
			n++
		}
	}
	if n < 20 {
		return fmt.Errorf("reflection names %d methods only", n)
	}
	return nil
}

func health(c *client, _ string) error {
	h := grpc_health_v1.NewHealthClient(c.conn)
	ctx, cancel := c.context(10 * time.Second)
	defer cancel()
	watch, err := h.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		return err
	}
	first, err := watch.Recv()
	if err != nil {
		return err
	}
	reply, err := h.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		return err
	}
	if reply.Status != grpc_health_v1.HealthCheckResponse_SERVING || first.Status != reply.Status {
		return fmt.Errorf("not serving: %v, %v", first, reply)
	}
	_, err = h.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "no.such.Service"})
	return want(codes.NotFound, err)
}

// wait waits for a held job with a context, which must end it.
func (c *client) wait(ctx context.Context, job uint32) error {
	m, err := c.method("Controller", "Wait")
	if err != nil {
		return err
	}
	request := dynamicpb.NewMessage(m.Input())
	set(request, "job_id", job)
	_, err = c.call(ctx, m, request)
	return err
}

func deadline(c *client, _ string) error {
	job, err := c.submit(100)
	if err != nil {
		return err
	}
	ctx, cancel := c.context(300 * time.Millisecond)
	defer cancel()
	return want(codes.DeadlineExceeded, c.wait(ctx, job))
}

func cancellation(c *client, _ string) error {
	job, err := c.submit(100)
	if err != nil {
		return err
	}
	ended := make(chan error)
	for i := 0; i < 100; i++ {
		ctx, cancel := c.context(20 * time.Second)
		time.AfterFunc(time.Duration(i)*5*time.Millisecond, cancel)
		go func() { ended <- want(codes.Canceled, c.wait(ctx, job)) }()
	}
	for i := 0; i < 100; i++ {
		err = errors.Join(err, <-ended)
	}
	return err
}

func large(c *client, _ string) error {
	if _, err := c.submit(3 << 20); err != nil {
		return fmt.Errorf("a script of 3 MiB: %w", err)
	}
	if err := want(codes.ResourceExhausted, func() error { _, err := c.submit(30 << 20); return err }()); err != nil {
		return err
	}
	_, err := c.submit(100) // and the connection goes on
	return err
}

func compression(c *client, _ string) error {
	_, err := c.submit(1000, grpc.UseCompressor(gzip.Name))
	return want(codes.Unimplemented, err)
}

// goaway pings without pause for as long as the argument says, while the server is stopped and started again.
func goaway(c *client, seconds string) error {
	m, err := c.method("Controller", "Ping")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(seconds)
	if err != nil {
		return err
	}
	fmt.Println("begun")
	for end := time.Now().Add(time.Duration(n) * time.Second); time.Now().Before(end); {
		ctx, cancel := c.context(20 * time.Second)
		_, err := c.call(ctx, m, dynamicpb.NewMessage(m.Input()), grpc.WaitForReady(true))
		cancel()
		// What the server had begun when it ended can be lost; what it had not seen is sent again by grpc-go itself.
		if err != nil && status.Code(err) != codes.Unavailable {
			return err
		}
	}
	return nil
}

var checks = map[string]func(*client, string) error{
	"methods": methods, "health": health, "deadline": deadline, "cancellation": cancellation, "large": large,
	"compression": compression, "goaway": goaway,
}

func run(address, check, argument string) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	c := &client{conn: conn}
	if err := c.files.load(conn); err != nil {
		return fmt.Errorf("reflection: %w", err)
	}
	if checks[check] == nil {
		return fmt.Errorf("there is no check %q", check)
	}
	return checks[check](c, argument)
}

func main() {
	arguments := append(os.Args[1:], "", "", "")
	if err := run(arguments[0], arguments[1], arguments[2]); err != nil {
		fmt.Println("grpcgo:", err)
		os.Exit(1)
	}
}
