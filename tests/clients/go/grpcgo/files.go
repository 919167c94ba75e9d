// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// files is what the server's reflection says of itself.
type files struct {
	services []string
	registry *protoregistry.Files
}

func (f *files) find(name string) (protoreflect.Descriptor, error) {
	return f.registry.FindDescriptorByName(protoreflect.FullName(name))
}

func ask(s reflection.ServerReflection_ServerReflectionInfoClient, q *reflection.ServerReflectionRequest) (*reflection.ServerReflectionResponse, error) {
	if err := s.Send(q); err != nil {
		return nil, err
	}
	reply, err := s.Recv()
	if err == nil && reply.GetErrorResponse() != nil {
		err = fmt.Errorf("%s", reply.GetErrorResponse().ErrorMessage)
	}
	return reply, err
}

func (f *files) load(conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	s, err := reflection.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		return err
	}
	reply, err := ask(s, &reflection.ServerReflectionRequest{MessageRequest: &reflection.ServerReflectionRequest_ListServices{}})
	if err != nil {
		return err
	}
	set := &descriptorpb.FileDescriptorSet{}
	seen := map[string]bool{}
	for _, service := range reply.GetListServicesResponse().GetService() {
		f.services = append(f.services, service.Name)
		reply, err := ask(s, &reflection.ServerReflectionRequest{
			MessageRequest: &reflection.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: service.Name}})
		if err != nil {
			return fmt.Errorf("%s: %w", service.Name, err)
		}
		for _, bytes := range reply.GetFileDescriptorResponse().GetFileDescriptorProto() {
			file := &descriptorpb.FileDescriptorProto{}
			if err := proto.Unmarshal(bytes, file); err != nil {
				return err
			}
			if !seen[file.GetName()] {
				seen[file.GetName()] = true
				set.File = append(set.File, file)
			}
		}
	}
	f.registry, err = protodesc.NewFiles(set)
	return err
}
