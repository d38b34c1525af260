// warpline from Go: a transpose, a product, a program, and a request that is refused, with the types that
// protoc generates. Every result is checked; the exit code is 1 when one is wrong.
//
// With protoc, protoc-gen-go and protoc-gen-go-grpc in PATH:
//
//	go generate && go mod tidy && go build && ./client 127.0.0.1:50051
//
// Without a module proxy, from the packages of Debian: see client/examples/run_tests. Only that way is tested.
package main

//go:generate protoc --proto_path=../../../proto --go_out=. --go_opt=Mwarpline/v1/warpline.proto=./warplinepb --go-grpc_out=. --go-grpc_opt=Mwarpline/v1/warpline.proto=./warplinepb warpline/v1/warpline.proto

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"time"
	"unsafe"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "warpline.example/client/warplinepb"
)

// The operands: a is m x k, b is k x n.
const m, k, n = 96, 64, 48

var (
	a    = integers(m*k, 1)
	b    = integers(k*n, 2)
	bias = integers(n, 3)
)

// integers returns small integers: their products and sums are exact in float32, so results can be compared bit
// for bit.
func integers(count, seed int) []float32 {
	values := make([]float32, count)
	for i := range values {
		values[i] = float32((i*31+seed)%17 - 8)
	}
	return values
}

// product returns a * b.
func product() []float32 {
	d := make([]float32, m*n)
	for i := 0; i < m; i++ {
		for j := 0; j < n; j++ {
			for l := 0; l < k; l++ {
				d[i*n+j] += a[i*k+l] * b[l*n+j]
			}
		}
	}
	return d
}

// tensor returns a dense tensor over the memory of values, not a copy: on little-endian machines these are the
// bytes that go over the wire.
func tensor(values []float32, shape ...int64) *pb.Tensor {
	return &pb.Tensor{
		DataType: pb.DataType_DATA_TYPE_F32,
		Shape:    shape,
		Source:   &pb.Tensor_Inline{Inline: unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), 4*len(values))},
	}
}

// elements returns the elements of t, which has some, without copying them: in Go's messages bytes are an
// allocation of their own, and so are aligned.
func elements[T float32 | int64](t *pb.Tensor) []T {
	data := t.GetInline()
	return unsafe.Slice((*T)(unsafe.Pointer(&data[0])), len(data)/int(unsafe.Sizeof(*new(T))))
}

// check returns an error unless got is a tensor of that shape with these elements.
func check[T float32 | int64](got *pb.Tensor, want []T, shape ...int64) error {
	if !reflect.DeepEqual(got.GetShape(), shape) {
		return fmt.Errorf("the shape is %v, not %v", got.GetShape(), shape)
	}
	for i, value := range elements[T](got) {
		if value != want[i] {
			return fmt.Errorf("element %d is %v, not %v", i, value, want[i])
		}
	}
	return nil
}

func transpose(ctx context.Context, client pb.KernelServiceClient) (*pb.Execution, error) {
	response, err := client.Transpose(ctx, &pb.TransposeRequest{X: tensor(a, m, k)})
	if err != nil {
		return nil, err
	}
	want := make([]float32, m*k)
	for i := range want {
		want[i] = a[i%m*k+i/m]
	}
	return response.GetExecution(), check(response.GetY(), want, k, m)
}

func gemm(ctx context.Context, client pb.KernelServiceClient) (*pb.Execution, error) {
	alpha := 2.0
	response, err := client.Gemm(ctx, &pb.GemmRequest{A: tensor(a, m, k), B: tensor(b, k, n), Alpha: &alpha})
	if err != nil {
		return nil, err
	}
	want := product()
	for i := range want {
		want[i] *= 2
	}
	return response.GetExecution(), check(response.GetD(), want, m, n)
}

// run asks for the column of the greatest score in each row. The scores are computed on the server and stay
// there.
func run(ctx context.Context, client pb.KernelServiceClient) (*pb.Execution, error) {
	response, err := client.Run(ctx, &pb.RunRequest{
		Program: &pb.Program{
			Steps: []*pb.Step{{
				Name:   "scores",
				Inputs: []string{"x", "w", "bias"},
				Operation: &pb.Step_Gemm{Gemm: &pb.GemmStep{
					HasBias: true, Activation: pb.Activation_ACTIVATION_RELU,
				}},
			}, {
				Name:   "best",
				Inputs: []string{"scores"},
				Operation: &pb.Step_Reduce{Reduce: &pb.ReduceStep{
					Op: pb.ReduceOp_REDUCE_OP_ARGMAX, Axes: []int32{1},
				}},
			}},
			Outputs: []string{"best"},
		},
		Inputs: []*pb.NamedTensor{
			{Name: "x", Tensor: tensor(a, m, k)},
			{Name: "w", Tensor: tensor(b, k, n)},
			{Name: "bias", Tensor: tensor(bias, n)},
		},
		Options: &pb.RequestOptions{Report: true},
	})
	if err != nil {
		return nil, err
	}
	scores := product()
	want := make([]int64, m)
	for i := range want {
		best := float32(math.Inf(-1))
		for j, value := range scores[i*n : (i+1)*n] {
			score := value + bias[j]
			if score < 0 {
				score = 0
			}
			if score > best {
				best, want[i] = score, int64(j)
			}
		}
	}
	if len(response.GetOutputs()) != 1 || response.GetOutputs()[0].GetName() != "best" {
		return nil, fmt.Errorf("the outputs are %v", response.GetOutputs())
	}
	return response.GetExecution(), check(response.GetOutputs()[0].GetTensor(), want, m)
}

// fields returns the fields that the server complains about: google.rpc.BadRequest in the details of an error.
func fields(err error) (names []string) {
	for _, detail := range status.Convert(err).Details() {
		if badRequest, ok := detail.(*errdetails.BadRequest); ok {
			for _, violation := range badRequest.GetFieldViolations() {
				names = append(names, violation.GetField())
			}
		}
	}
	return names
}

// refused makes a mistake, to show what its error says.
func refused(ctx context.Context, client pb.KernelServiceClient) error {
	_, err := client.Transpose(ctx, &pb.TransposeRequest{X: tensor(a, m, k), Perm: []int32{0, 0}})
	if status.Code(err) != codes.InvalidArgument || strings.Join(fields(err), ",") != "perm" {
		return fmt.Errorf("a wrong perm: %v, fields %v", err, fields(err))
	}
	fmt.Printf("refused, as it should be: %s, field perm: %s\n", status.Code(err), status.Convert(err).Message())
	return nil
}

// transport is TLS if $WARPLINE_TLS_CA names a file, with a certificate of our own if the other two variables do.
func transport() (grpc.DialOption, error) {
	path := os.Getenv("WARPLINE_TLS_CA")
	if path == "" {
		// In grpc-go 1.43 and later: insecure.NewCredentials. This is in Debian 12's too.
		return grpc.WithInsecure(), nil
	}
	ca, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	if !config.RootCAs.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s holds no certificate in PEM form", path)
	}
	if own := os.Getenv("WARPLINE_TLS_CERT"); own != "" {
		pair, err := tls.LoadX509KeyPair(own, os.Getenv("WARPLINE_TLS_KEY"))
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return grpc.WithTransportCredentials(credentials.NewTLS(config)), nil
}

func examples(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	security, err := transport()
	if err != nil {
		return err
	}
	// In grpc-go 1.63 and later: grpc.NewClient. This is in Debian 12's too.
	connection, err := grpc.DialContext(ctx, address, security,
		// Of responses; 4 MiB unless set. Those to the server are limited by the server alone.
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)))
	if err != nil {
		return err
	}
	defer connection.Close()
	client := pb.NewKernelServiceClient(connection)

	for _, step := range []struct {
		name string
		do   func(context.Context, pb.KernelServiceClient) (*pb.Execution, error)
	}{{"transpose", transpose}, {"gemm", gemm}, {"run", run}} {
		// Comes back in the response or the error, and is what the server logs.
		id := fmt.Sprintf("go-%s-%d", step.name, time.Now().UnixNano())
		execution, err := step.do(metadata.AppendToOutgoingContext(ctx, "x-request-id", id), client)
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("%s: ok, %s on %s, %.0f us\n", step.name, strings.Join(execution.GetVariants(), " + "),
			execution.GetBackend(), execution.GetStageTimes().GetDevice()*1e6)
	}
	return refused(ctx, client)
}

func main() {
	address := "127.0.0.1:50051"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	if err := examples(address); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
